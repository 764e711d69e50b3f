package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"
)

const chart = "../../deploy/helm"

// object has what the test compares of an object of Kubernetes.
type object struct {
	Kind string
	Spec struct {
		Ports []struct {
			TargetPort string `yaml:"targetPort"`
		}
		Template struct {
			Spec struct {
				Containers []struct {
					Args  []string
					Ports []struct {
						Name          string
						ContainerPort string `yaml:"containerPort"`
					}
					ReadinessProbe struct {
						HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
					} `yaml:"readinessProbe"`
					VolumeMounts []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct{ Name string }
			}
		}
		VolumeClaimTemplates []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
	}
}

// objects returns the objects of a stream of YAML.
func objects(t *testing.T, text []byte) (list []map[string]any) {
	t.Helper()
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var o map[string]any
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, o)
	}
}

// render returns what the templates of the chart write. They use what text/template has, and quote.
func render(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(chart + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	all, err := template.New("").Option("missingkey=error").Funcs(template.FuncMap{"quote": func(s string) string { return `"` + s + `"` }}).ParseGlob(chart + "/templates/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := all.ExecuteTemplate(&b, "btfleet.yaml", map[string]any{"Values": values, "Release": map[string]string{"Name": "demo"}}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The chart has flags of btfleet serve, the port at which it listens, a probe that it answers, and a volume for each directory that it
// names. It is not installed: that needs a cluster.
func TestHelm(t *testing.T) {
	text := render(t)
	kinds := map[string]object{}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var o object
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		kinds[o.Kind] = o
	}
	set, service := kinds["StatefulSet"].Spec, kinds["Service"].Spec
	if len(kinds) != 2 || len(set.Template.Spec.Containers) != 1 || len(service.Ports) != 1 {
		t.Fatalf("%+v", kinds)
	}
	c := set.Template.Spec.Containers[0]
	serve := serveCommand()
	if len(c.Args) == 0 || c.Args[0] != "serve" {
		t.Fatalf("args %q", c.Args)
	}
	if err := serve.ParseFlags(c.Args[1:]); err != nil || serve.Flags().NArg() > 0 {
		t.Errorf("%v, %q", err, serve.Flags().Args())
	}
	_, port, err := net.SplitHostPort(serve.Flag("listen").Value.String())
	if err != nil || len(c.Ports) != 1 || c.Ports[0].ContainerPort != port || c.Ports[0].Name != service.Ports[0].TargetPort || c.ReadinessProbe.HTTPGet.Port != c.Ports[0].Name {
		t.Errorf("ports %+v and %+v of --listen %s, %v", c.Ports, service.Ports, port, err)
	}
	handlers, err := os.ReadFile("../../server/http.go")
	if err != nil || !bytes.Contains(handlers, []byte(`"GET `+c.ReadinessProbe.HTTPGet.Path+`"`)) {
		t.Errorf("no handler of %q, %v", c.ReadinessProbe.HTTPGet.Path, err)
	}
	var names, mounts []string
	for _, v := range set.Template.Spec.Volumes {
		names = append(names, v.Name)
	}
	for _, v := range set.VolumeClaimTemplates {
		names = append(names, v.Metadata.Name)
	}
	docker, err := os.ReadFile(filepath.Join(chart, "../Dockerfile"))
	dir := regexp.MustCompile(`(?m)^WORKDIR (.*)$`).FindSubmatch(docker)
	if err != nil || dir == nil {
		t.Fatalf("no WORKDIR in the Dockerfile: %v", err)
	}
	for _, m := range c.VolumeMounts {
		mounts = append(mounts, m.MountPath)
		if !slices.Contains(names, m.Name) {
			t.Errorf("no volume %q", m.Name)
		}
	}
	for _, flag := range []string{"store", "spool", "tokens"} {
		path := serve.Flag(flag).Value.String()
		if !filepath.IsAbs(path) {
			path = filepath.Join(string(dir[1]), path)
		}
		if !slices.Contains(mounts, filepath.Dir(path)) {
			t.Errorf("--%s %s is in no volume of %q", flag, path, mounts)
		}
	}
}

// checker reads a chart with Helm's packages, and the objects that it makes with the types of Kubernetes, unknown fields being errors. It
// prints the objects.
const checker = `package main

import (
	"fmt"
	"log"
	"os"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	lint := action.NewLint()
	lint.Strict = true
	if r := lint.Run(os.Args[1:2], nil); len(r.Errors) > 0 {
		log.Fatal(r.Errors)
	}
	c, err := loader.Load(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	values, err := chartutil.ToRenderValues(c, nil, chartutil.ReleaseOptions{Name: "demo", Namespace: "default"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	files, err := engine.Render(c, values)
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range files {
		for _, o := range strings.Split(text, "\n---\n") {
			var kind struct{ Kind string }
			if err := yaml.Unmarshal([]byte(o), &kind); err != nil {
				log.Fatal(err)
			}
			into, ok := map[string]any{"Service": &core.Service{}, "StatefulSet": &apps.StatefulSet{}}[kind.Kind]
			if !ok {
				log.Fatal("kind ", kind.Kind)
			}
			if err := yaml.UnmarshalStrict([]byte(o), into); err != nil {
				log.Fatal(err)
			}
		}
		fmt.Print(text)
	}
}
`

// Helm finds no fault in the chart, Kubernetes' types have all its fields, and what Helm renders is what TestHelm looks at.
func TestHelmItself(t *testing.T) {
	if os.Getenv("LWSBT_FULL") != "all" {
		t.Skip("long: LWSBT_FULL=all builds Helm's packages")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": checker, "go.mod": "module chart\n\ngo 1.26\n\nrequire helm.sh/helm/v3 v3.21.4\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path, err := filepath.Abs(chart)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for _, args := range [][]string{{"mod", "tidy"}, {"run", ".", path}} {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
		var notes bytes.Buffer
		cmd.Stderr = &notes
		if out, err = cmd.Output(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, notes.String())
		}
	}
	got, want := objects(t, out), objects(t, render(t))
	if len(want) != 2 {
		t.Fatalf("%d objects", len(want))
	}
	a, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := yaml.Marshal(want); err != nil || !bytes.Equal(a, b) {
		t.Errorf("Helm renders\n%s\nwant\n%s", a, b)
	}
}
