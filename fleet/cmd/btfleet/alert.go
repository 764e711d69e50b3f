package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// active is the time for which a build is examined after its last dump.
const active = 7 * 24 * time.Hour

// watch examines the builds that send dumps, and posts alerts.
type watch struct {
	store *store.Store
	db    *query.DB
	pages *page.Pages // which have computed the leaks already
	log   *slog.Logger
	url   string  // of the webhook
	page  string  // URL of the page, "" if it is not known
	days  float64 // alert if a heap is exhausted within these
}

// alert is the body of a webhook.
type alert struct {
	Alert    string       `json:"alert"` // leak or exhausted
	Build    string       `json:"build"`
	Firmware string       `json:"fw"`
	Text     string       `json:"text"`  // one sentence
	Hours    *float64     `json:"hours"` // until the heap of the first device is exhausted; null if not known
	Leaks    []query.Leak `json:"leaks"`
	Link     string       `json:"link,omitempty"` // to the page of the build
}

// pass examines all active builds. It continues with the others if one fails.
func (w *watch) pass(ctx context.Context) error {
	list, err := w.db.Builds(ctx, query.Scope{Since: time.Now().Add(-active)})
	if err != nil {
		return err
	}
	var failed []error
	for _, b := range list {
		l, err := w.pages.Leaks(ctx, b.Build)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for _, a := range w.alerts(b, l) {
			failed = append(failed, w.once(ctx, a))
		}
	}
	return errors.Join(failed...)
}

// inChat replaces what chat programs read as markup, as a mention of people or as a link: devices choose
// the names in a sentence. Underscores stay: names of functions have them, and they make at most italics.
var inChat = strings.NewReplacer("<", "‹", ">", "›", "&", "＆", "@", "＠", "[", "［", "]", "］", "://", ":／／", "*", "＊", "`", "ˋ", "~", "～")

// alerts returns the alerts that apply to a build.
func (w *watch) alerts(b query.Build, l *query.Leaks) (list []alert) {
	a := alert{Build: b.Build, Firmware: b.Firmware}
	if w.page != "" {
		a.Link = strings.TrimSuffix(w.page, "/") + "/build/" + url.PathEscape(b.Build)
	}
	sure := false
	for _, r := range l.Rows {
		if r.Verdict.Sure() {
			a.Leaks = append(a.Leaks, r)
			sure = sure || r.Verdict == query.Leaking
		}
	}
	soon := 0
	if l.Exhaustion != nil && len(l.Exhaustion.Each) > 0 {
		a.Hours = &l.Exhaustion.Each[0]
		soon, _ = slices.BinarySearch(l.Exhaustion.Each, w.days*24)
	}
	if sure {
		a.Alert, a.Text = "leak", inChat.Replace(fmt.Sprintf("Firmware %s (build %s) leaks: %s, on %d of %d devices.", b.Firmware, page.Short(b.Build), page.Site(a.Leaks[0].Stack), a.Leaks[0].Grew, l.Devices))
		list = append(list, a)
	}
	if soon > 0 {
		a.Alert, a.Text = "exhausted", inChat.Replace(fmt.Sprintf("%s with firmware %s (build %s) within %g days of an exhausted heap, the first in %s.",
			cli.Count(int64(soon), "device"), b.Firmware, page.Short(b.Build), w.days, page.Hours(*a.Hours)))
		list = append(list, a)
	}
	return list
}

// once posts an alert, if it was not sent before. If that fails, the next pass tries again.
func (w *watch) once(ctx context.Context, a alert) error {
	if sent, err := w.store.Sent(ctx, a.Build, a.Alert); sent || err != nil {
		return err
	}
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	var withURL *url.Error
	if errors.As(err, &withURL) {
		err = withURL.Err // the URL of a webhook is a secret
	}
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("webhook: %s", resp.Status)
	}
	w.log.Info("alert sent", "alert", a.Alert, "build", a.Build)
	return w.store.MarkSent(ctx, a.Build, a.Alert)
}
