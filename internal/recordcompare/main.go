//go:build linux

// Recordcompare compares btrecord with heaptrack and valgrind's DHAT on programs of the system, and prints the tables of
// docs/btrecord-compared.md.
//
//	go run ./internal/recordcompare totals
//	go run ./internal/recordcompare cost
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) != 2 || os.Args[1] != "totals" && os.Args[1] != "cost" {
		fmt.Fprintln(os.Stderr, "usage: compare totals|cost")
		os.Exit(2)
	}
	dir, err := os.MkdirTemp("", "compare")
	if err == nil {
		defer os.RemoveAll(dir)
		b := bench{dir: dir}
		if err = b.prepare(); err == nil && os.Args[1] == "totals" {
			err = b.totals()
		} else if err == nil {
			err = b.cost()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.RemoveAll(dir)
		os.Exit(3)
	}
}

// bench is a directory with input files.
type bench struct {
	dir, heaptrack string
}

// program is a program to record, with its arguments. If it is a server, drive sends it
// requests and then ends it.
type program struct {
	name  string
	args  []string
	drive func() error
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) prepare() error {
	for _, p := range []string{"/usr/lib/heaptrack/libheaptrack_preload.so", "/usr/lib/x86_64-linux-gnu/heaptrack/libheaptrack_preload.so"} {
		if _, err := os.Stat(p); err == nil {
			b.heaptrack = p
		}
	}
	if b.heaptrack == "" {
		return fmt.Errorf("heaptrack is not installed")
	}
	for name, text := range map[string]string{
		"churn.pl": "my @a; for my $i (1..$ARGV[0]) { my %h=(a=>\"x$i\",b=>[1,2,3]); push @a,\\%h if $i%10==0; }\n" +
			"open my $f,'<','/proc/thread-self/schedstat'; my ($ns)=split / /,<$f>; open my $o,'>',$ENV{OWN}; print $o $ns;\n",
		"script.pl": "my %h; for my $i (1..20000) { my %r=(a=>\"x$i\",b=>[1,2,3]); push @{$h{$i%100}},\\%r if $i%10==0; }\n",
		"script.py": "import json,collections\nd=collections.defaultdict(list)\nfor i in range(20000):\n    d[i%100].append(json.loads(json.dumps({'a':i,'b':[str(i)]*3})))\n",
		"script.sql": "create table t(a integer primary key, b text, c real);\nwith recursive n(i) as (select 1 union all select i+1 from n where i<20000) insert into t select i, 'row '||i, i*1.5 from n;\n" +
			"create index ti on t(b);\nselect count(*), sum(c) from t where b like '%7%' group by a%10 order by 2;\n",
		"script.cc": "#include <map>\n#include <memory>\n#include <string>\n#include <vector>\nint main(){std::map<std::string,std::shared_ptr<std::vector<int>>> m;\n" +
			"for(int i=0;i<40000;i++){auto v=std::make_shared<std::vector<int>>();for(int k=0;k<20;k++)v->push_back(k);m[\"a long key, not within the string \"+std::to_string(i%5000)]=v;}\n" +
			"auto *leak=new std::map<std::string,std::shared_ptr<std::vector<int>>>(m);return leak->size()==5000?0:1;}\n",
		"script.tcl":   "for {set i 0} {$i < 20000} {incr i} { dict set d [expr {$i % 500}] \"value $i\"; lappend l [string repeat x [expr {$i % 60}]] }\nputs [llength [lsort -unique $l]]\n",
		"script.bc":    "scale=200\nfor (i = 1; i < 2000; i++) s = s + sqrt(i)/i\ns\nquit\n",
		"script.cmake": "foreach(i RANGE 3000)\n  list(APPEND l \"item ${i}\")\n  set(V${i} \"${i} of 3000\")\nendforeach()\nlist(SORT l)\nlist(LENGTH l n)\nmessage(STATUS ${n})\n",
		"script.mk":    "N := $(foreach a,0 1 2 3 4 5 6 7 8 9,$(foreach b,0 1 2 3 4 5 6 7 8 9,$(foreach c,0 1 2 3 4 5 6 7 8 9,$a$b$c)))\nall: $(N:%=t%)\nt%: ; echo $* $(words $(N))\n",
		"script.awk":   "BEGIN { for (i = 0; i < 20000; i++) { n[i % 700] = n[i % 700] \" \" i; if (i % 50 == 0) delete n[i % 700] } for (k in n) s += length(n[k]); print s }\n",
		"script.c":     "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n" + strings.Repeat("static int fN(int a){int s=0;for(int i=0;i<a;i++){s+=i*a;if(s&1)s^=a;}return s;}\n", 1) + "int main(int c,char**v){return printf(\"%d\\n\",fN(c));}\n",
	} {
		if err := os.WriteFile(b.path(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	big := strings.Repeat("some text to compress, with numbers 0123456789\n", 200000)
	if err := os.WriteFile(b.path("text"), []byte(big), 0o644); err != nil {
		return err
	}
	for _, line := range [][]string{
		{"go", "build", "-o", b.path("btrecord"), "./cmd/btrecord"},
		{"g++", "-O2", "-g", "-o", b.path("cpp"), b.path("script.cc")},
		{"g++", "-O2", "-g", "-c", "-o", b.path("cpp.o"), b.path("script.cc")},
		{"gcc", "-E", "-o", b.path("script.i"), b.path("script.c")},
		{"git", "init", "-q", b.path("git")},
		{"cp", "-r", "cmd", "codec", b.path("git")},
		{"git", "-C", b.path("git"), "add", "."},
		{"git", "-C", b.path("git"), "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "all"},
	} {
		if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(line, " "), err, out)
		}
	}
	return nil
}

func (b *bench) programs() []program {
	cc1, _ := exec.Command("gcc", "-print-prog-name=cc1").Output()
	socket := b.path("redis")
	list := []program{
		{"perl", []string{"perl", b.path("script.pl")}, nil},
		{"git log -p", []string{"git", "-C", b.path("git"), "--no-pager", "log", "-p", "--stat"}, nil},
		{"cc1 -O2", []string{strings.TrimSpace(string(cc1)), "-quiet", "-O2", b.path("script.i"), "-o", "/dev/null"}, nil},
		{"sqlite3", []string{"sqlite3", "-init", b.path("script.sql"), ":memory:", ".quit"}, nil},
		{"python3", []string{"/usr/bin/python3", "-X", "utf8", b.path("script.py")}, nil},
		{"a C++ program", []string{b.path("cpp")}, nil},
		{"zstd -T2", []string{"zstd", "-q", "-T2", "-f", b.path("text"), "-o", b.path("text.zst")}, nil},
		{"tclsh", []string{"tclsh", b.path("script.tcl")}, nil},
		{"bc", []string{"bc", "-q", b.path("script.bc")}, nil},
		{"ld", []string{"ld", "-r", "-o", b.path("linked.o"), b.path("cpp.o"), b.path("cpp.o"), "--allow-multiple-definition"}, nil},
		{"objdump -dl", []string{"objdump", "-d", "-l", b.path("cpp.o")}, nil},
		{"openssl", []string{"openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=test", "-keyout", "/dev/null", "-out", "/dev/null"}, nil},
		{"cmake -P", []string{"cmake", "-P", b.path("script.cmake")}, nil},
		{"make", []string{"make", "-sn", "-f", b.path("script.mk")}, nil},
		{"awk", []string{"awk", "-f", b.path("script.awk")}, nil},
	}
	if _, err := exec.LookPath("redis-server"); err == nil {
		list = append(list, program{"redis-server", []string{"redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--daemonize", "no", "--dir", b.dir},
			func() error { return driveRedis(socket) }})
	}
	return list
}

// driveRedis puts a load on a server, the same each time, and ends it.
func driveRedis(socket string) error {
	for tries := 0; ; tries++ {
		if out, _ := exec.Command("redis-cli", "-s", socket, "ping").Output(); string(out) == "PONG\n" {
			break
		}
		if tries == 600 {
			return fmt.Errorf("redis-server does not answer within a minute")
		}
		time.Sleep(100 * time.Millisecond)
	}
	out, err := exec.Command("redis-benchmark", "-q", "-s", socket, "-c", "1", "-n", "4000", "-d", "100", "-t", "set,get,incr,lpush,lpop,sadd,hset").CombinedOutput()
	if err != nil {
		return fmt.Errorf("redis-benchmark: %w\n%s", err, out)
	}
	// It closes the connection, for which redis-cli fails.
	exec.Command("redis-cli", "-s", socket, "shutdown", "nosave").Run()
	return nil
}

// run runs a program with a fixed environment plus extra, and, unless nil, drive at the same
// time. It returns the standard error of the program, its CPU time in seconds, and its
// maximum resident set in KB.
func (b *bench) run(args []string, drive func() error, extra ...string) (stderr string, cpu float64, rss int64, err error) {
	c := exec.Command(args[0], args[1:]...)
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "PERL_HASH_SEED=0", "PYTHONHASHSEED=0", "LC_ALL=C.UTF-8"}, extra...)
	var e strings.Builder
	c.Stderr = &e
	if err := c.Start(); err != nil {
		return "", 0, 0, err
	}
	if drive != nil {
		if err := drive(); err != nil {
			c.Process.Kill()
			c.Wait()
			return "", 0, 0, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, e.String())
		}
	}
	if err := c.Wait(); err != nil {
		return "", 0, 0, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, e.String())
	}
	u := c.ProcessState.SysUsage().(*syscall.Rusage)
	cpu = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	return e.String(), cpu, int64(u.Maxrss), nil
}
