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
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

var kinds = map[string]func(p *profile.Profile, labels map[string]string) (path, contentType string, body []byte, err error){
	"pyroscope": pyroscope, "parca": parca,
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
