package conformance

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// testeeVar is an environment variable. If set, the test binary is a testee with the fault that it names.
const testeeVar = "BTCONFORM_TEST_TESTEE"

func TestMain(m *testing.M) {
	if how := os.Getenv(testeeVar); how != "" {
		misbehave(how)
		return
	}
	// Parallel tests spend most of their time waiting for testees.
	flag.Parse()
	flag.Set("test.parallel", "8")
	os.Exit(m.Run())
}

// long is the time for which a testee hangs; it is killed before.
const long = 10 * time.Minute

// misbehave is a testee that decodes correctly, except that the blob "0002" triggers its
// fault.
func misbehave(how string) {
	codec, _ := Codec(context.Background())
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		line := in.Text()
		trigger := strings.Contains(line, " 0002 ")
		switch {
		case strings.HasPrefix(line, "hello"):
			switch how {
			case "no hello":
				return
			case "late hello":
				time.Sleep(300 * time.Millisecond)
			case "wrong hello":
				fmt.Println("hi there")
				continue
			case "hello of another op":
				fmt.Println("hello btp=1 name=x ops=divine")
				continue
			}
			fmt.Println("hello btp=1 name=" + strings.ReplaceAll(how, " ", "-") + " version=1 ops=decode")
			continue
		case !trigger:
			if how == "slow" {
				time.Sleep(20 * time.Millisecond)
			}
		case how == "segfault":
			fmt.Fprintln(os.Stderr, "about to fall")
			killSelf("SEGV")
		case how == "abort":
			killSelf("ABRT")
		case how == "exit":
			os.Exit(3)
		case how == "early end":
			os.Exit(0)
		case how == "closes its output":
			os.Stdout.Close()
			time.Sleep(long)
		case how == "leaves a child behind": // in a session of its own, with this output
			cmd := exec.Command("setsid", "sleep", "60")
			cmd.Stdout = os.Stdout
			cmd.Start()
			os.Exit(0)
		case how == "flushes at the end only":
			for in.Scan() {
			}
			fmt.Println("ok")
			return
		case how == "answers late":
			time.Sleep(5500 * time.Millisecond)
		case how == "hang":
			time.Sleep(long)
		case how == "garbage":
			fmt.Println("segmentation fault?")
			continue
		case how == "wrong id":
			fmt.Println("ok 9999 size=0 pcs=-")
			continue
		case how == "half a line":
			fmt.Print("ok ")
			return
		case how == "endless line":
			for range 3000 {
				fmt.Print(strings.Repeat("x", 1000))
			}
			return
		case how == "answers twice":
			answer, _ := serveLine(codec, line)
			fmt.Println(answer)
			fmt.Println(answer)
			continue
		case how == "wrong verb":
			fmt.Println("blob " + strings.Fields(line)[1] + " 00")
			continue
		case how == "bad value":
			fmt.Println("ok " + strings.Fields(line)[1] + " size=0x10 pcs=-")
			continue
		case how == "skips":
			fmt.Println("skip " + strings.Fields(line)[1] + " not today")
			continue
		case how == "wrong every other time":
			flipFlop = !flipFlop
			if flipFlop {
				fmt.Println("ok " + strings.Fields(line)[1] + " size=7 pcs=-")
				continue
			}
		}
		answer, err := serveLine(codec, line)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		fmt.Println(answer)
	}
}

var flipFlop bool

// serveLine answers a line other than quit as a testee does.
func serveLine(t Testee, line string) (string, error) {
	hello := t.Hello()
	if line == helloRequest {
		machines := strings.ReplaceAll(strings.Trim(fmt.Sprint(hello.Machines), "[]"), " ", ",")
		return "hello btp=1 name=" + hello.Name + " version=" + hello.Version +
			" ops=" + joined(hello.Ops, ",") + " machines=" + machines, nil
	}
	id, r, known, err := ParseRequest(line)
	if err != nil {
		return "", err
	}
	if !known || !hello.Offers(r) {
		return "skip " + id + " unsupported", nil
	}
	answers, err := t.Ask([]Request{r})
	if err != nil {
		return "", err
	}
	switch a := answers[0]; a.Outcome {
	case OK:
		o := r.Op.row().out
		return o.verb + " " + id + " " + o.write(a), nil
	case Reject:
		if a.Bit >= 0 {
			return fmt.Sprintf("reject %s %s bit=%d %s", id, a.Reason, a.Bit, a.Text), nil
		}
		return "reject " + id + " " + a.Reason + " " + a.Text, nil
	default:
		return "skip " + id + " " + a.Text, nil
	}
}
