package push

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Target is a server of profiles.
type Target struct {
	Kind  string // one of [Kinds]
	URL   string // URL of the server, without the path of its API
	Token string // if not "", sent as a bearer token
}

// Kinds returns the kinds of servers:
//
//	pyroscope   Pyroscope, push.v1.PusherService/Push, by Connect with JSON
//	parca       Parca, /profiles/writeraw, with JSON
//	otlp        OTLP profiles, /v1development/profiles, with Protobuf. It is alpha: its
//	            format changes with each release; this is the format of pdata/pprofile v0.165
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

var kinds = map[string]func(p *profile.Profile, labels map[string]string) (path, contentType string, body []byte, err error){
	"pyroscope": pyroscope, "parca": parca, "otlp": otlp,
}

// Send sends a profile with labels. Pyroscope requires the label service_name.
func (t Target) Send(ctx context.Context, p *profile.Profile, labels map[string]string) error {
	encode := kinds[t.Kind]
	if encode == nil {
		return fmt.Errorf("server %q: expected %s", t.Kind, strings.Join(Kinds(), ", "))
	}
	path, contentType, body, err := encode(p, labels)
	if err != nil {
		return err
	}
	u, err := url.JoinPath(t.URL, path)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", contentType)
	if t.Token != "" {
		req.Header.Set("Authorization", "Bearer "+t.Token)
	}
	client := http.Client{Timeout: time.Minute}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(io.LimitReader(resp.Body, 500)); resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s: %q", u, resp.Status, text)
	}
	return nil
}

// label is a label of Pyroscope and Parca.
type label struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// sorted returns the sorted labels and the raw profile in base64, as Pyroscope and Parca require.
func sorted(p *profile.Profile, labels map[string]string) (list []label, raw string, err error) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, label{name, labels[name]})
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return nil, "", err
	}
	return list, base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

type object = map[string]any

func pyroscope(p *profile.Profile, labels map[string]string) (string, string, []byte, error) {
	list, raw, err := sorted(p, labels)
	if err != nil {
		return "", "", nil, err
	}
	body, err := json.Marshal(object{"series": []object{{
		"labels":  append(list, label{"__name__", "memory"}),
		"samples": []object{{"rawProfile": raw}},
	}}})
	return "push.v1.PusherService/Push", "application/json", body, err
}

func parca(p *profile.Profile, labels map[string]string) (string, string, []byte, error) {
	list, raw, err := sorted(p, labels)
	if err != nil {
		return "", "", nil, err
	}
	body, err := json.Marshal(object{"series": []object{{
		"labels":  object{"labels": append(list, label{"__name__", "memory"})},
		"samples": []object{{"rawProfile": raw}},
	}}})
	return "profiles/writeraw", "application/json", body, err
}

// otlp converts a profile to OTLP, with an OTLP Profile for each value type.
func otlp(p *profile.Profile, labels map[string]string) (string, string, []byte, error) {
	c := converter{data: pprofile.NewProfiles()}
	c.table = c.data.Dictionary()
	c.init()
	r := c.data.ResourceProfiles().AppendEmpty()
	for name, value := range labels {
		r.Resource().Attributes().PutStr(strings.ReplaceAll(name, "service_name", "service.name"), value)
	}
	scope := r.ScopeProfiles().AppendEmpty()
	scope.Scope().SetName("btfleet")
	for i, t := range p.SampleType {
		out := scope.Profiles().AppendEmpty()
		out.SetTime(pcommon.Timestamp(p.TimeNanos))
		out.SampleType().SetTypeStrindex(c.text(t.Type))
		out.SampleType().SetUnitStrindex(c.text(t.Unit))
		for _, s := range p.Sample {
			o := out.Samples().AppendEmpty()
			o.SetStackIndex(c.stack(s.Location))
			o.Values().Append(s.Value[i])
		}
	}
	if c.err != nil {
		return "", "", nil, c.err
	}
	// Profiles and the request have the same fields. Package pprofileotlp would add gRPC to the command.
	body, err := new(pprofile.ProtoMarshaler).MarshalProfiles(c.data)
	return "v1development/profiles", "application/x-protobuf", body, err
}

// converter fills the tables of OTLP. The first entry of each is empty, as OTLP requires.
type converter struct {
	data  pprofile.Profiles
	table pprofile.ProfilesDictionary
	err   error
}

func (c *converter) init() {
	c.table.StringTable().Append("")
	c.table.MappingTable().AppendEmpty()
	c.table.LocationTable().AppendEmpty()
	c.table.FunctionTable().AppendEmpty()
	c.table.LinkTable().AppendEmpty()
	c.table.AttributeTable().AppendEmpty()
	c.table.StackTable().AppendEmpty()
}

// keep stores the first error.
func (c *converter) keep(i int32, err error) int32 {
	if c.err == nil {
		c.err = err
	}
	return i
}

func (c *converter) text(s string) int32 { return c.keep(pprofile.SetString(c.table.StringTable(), s)) }

func (c *converter) stack(list []*profile.Location) int32 {
	stack := pprofile.NewStack()
	for _, l := range list {
		o := pprofile.NewLocation()
		o.SetAddress(l.Address)
		for _, line := range l.Line {
			f := pprofile.NewFunction()
			f.SetNameStrindex(c.text(line.Function.Name))
			f.SetSystemNameStrindex(c.text(line.Function.SystemName))
			f.SetFilenameStrindex(c.text(line.Function.Filename))
			x := o.Lines().AppendEmpty()
			x.SetFunctionIndex(c.keep(pprofile.SetFunction(c.table.FunctionTable(), f)))
			x.SetLine(line.Line)
		}
		stack.LocationIndices().Append(c.keep(pprofile.SetLocation(c.table.LocationTable(), o)))
	}
	return c.keep(pprofile.SetStack(c.table.StackTable(), stack))
}
