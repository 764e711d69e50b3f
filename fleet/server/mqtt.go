package server

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"

	"github.com/lwsbt/lwsbt/fleet/ingest"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// MQTT describes a subscription to a broker. The level of a topic that matches + in the filter
// is the name of the device. A payload may be compressed by gzip or zstd.
type MQTT struct {
	URL    *url.URL    // mqtt://HOST or mqtts://HOST, with user, password and port, if needed
	Filter string      // such as lwsbt/+/dump, or $share/btfleet/lwsbt/+/dump for several servers
	Client string      // client identifier, for which the broker stores messages while the server is away
	TLS    *tls.Config // for mqtts; nil for the certificates of the system and none of the server's own
}

// share is the prefix of a shared subscription, which topics do not have. (MQTT 5.0, 4.8.2)
var share = regexp.MustCompile(`^\$share/[^/]*/`)

// Topics returns an expression for the topics that a filter matches: its group is the device. It returns an error unless exactly one level
// of the filter is + and none is #.
func Topics(filter string) (*regexp.Regexp, error) {
	levels := strings.Split(share.ReplaceAllString(filter, ""), "/")
	n := 0
	for i, level := range levels {
		if levels[i] = regexp.QuoteMeta(level); level == "+" {
			levels[i] = "([^/]*)"
			n++
		} else if strings.ContainsAny(level, "+#") {
			n = 2
		}
	}
	if n != 1 {
		return nil, fmt.Errorf("MQTT filter %q: expected exactly one level + for the device, such as lwsbt/+/dump", filter)
	}
	return regexp.Compile("^" + strings.Join(levels, "/") + "$")
}

// dial connects to the broker. limit is that of a packet in bytes.
func (m *MQTT) dial(ctx context.Context, limit int) (net.Conn, error) {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	dial, port := new(net.Dialer).DialContext, "1883"
	if m.URL.Scheme == "mqtts" {
		dial, port = (&tls.Dialer{Config: m.TLS}).DialContext, "8883"
	}
	c, err := dial(ctx, "tcp", net.JoinHostPort(m.URL.Hostname(), cmp.Or(m.URL.Port(), port)))
	if err != nil {
		return nil, err
	}
	return &limitedConn{Conn: c, r: bufio.NewReader(c), limit: limit}, nil
}

// limitedConn is a connection that ends before a packet that is too large is read: the library reads what the
// broker announces, up to 256 MB.
type limitedConn struct {
	net.Conn
	sync.Mutex // which the library locks to write
	r          *bufio.Reader
	left       int // bytes of the packet that are not read yet
	limit      int // of a packet, in bytes
}

func (c *limitedConn) Read(p []byte) (int, error) {
	for n := 2; c.left == 0; n++ { // a byte, and a length of one byte or more (MQTT 5.0, 2.1)
		head, err := c.r.Peek(n)
		if err != nil {
			return 0, err
		}
		if length, size := binary.Uvarint(head[1:]); length > uint64(c.limit) || n > 5 {
			return 0, fmt.Errorf("the broker sends a packet of %d bytes, expected up to %d", length, c.limit)
		} else if size > 0 {
			c.left = n + int(length)
		}
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// Subscribe receives dumps from a broker until ctx is done. It acknowledges a message (QoS 1)
// once the message is in the spool. If the spool cannot take the message now, Subscribe closes
// the connection, and the broker sends the message again.
func (s *Server) Subscribe(ctx context.Context, m MQTT) error {
	topics, err := Topics(m.Filter)
	if err != nil {
		return err
	}
	again := make(chan struct{}, 1)
	retry := func() {
		select {
		case again <- struct{}{}:
		default:
		}
	}
	largest, waiting := uint32(s.Limits.Body)+(1<<16), uint16(s.Limits.Uploads) // the broker should send no larger message, and no more at once
	config := autopaho.ClientConfig{
		ServerUrls: []*url.URL{m.URL}, KeepAlive: 30, SessionExpiryInterval: 7 * 24 * 3600,
		AttemptConnection: func(ctx context.Context, _ autopaho.ClientConfig, _ *url.URL) (net.Conn, error) {
			return m.dial(ctx, int(largest))
		},
		ConnectPacketBuilder: func(c *paho.Connect, _ *url.URL) (*paho.Connect, error) {
			if c.Properties == nil {
				c.Properties = &paho.ConnectProperties{}
			}
			c.Properties.MaximumPacketSize, c.Properties.ReceiveMaximum = &largest, &waiting
			return c, nil
		},
		OnConnectionUp: func(c *autopaho.ConnectionManager, _ *paho.Connack) {
			ack, err := c.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: m.Filter, QoS: 1}}})
			if err == nil {
				s.Log.Info("subscribed", "broker", m.URL.Host, "filter", m.Filter)
				return
			}
			var reasons []byte
			if ack != nil {
				reasons = ack.Reasons
			}
			s.Log.Error("the broker refuses the subscription; it is tried again", "broker", m.URL.Host, "filter", m.Filter, "reasons", reasons, "err", err)
			retry()
		},
		OnConnectError: func(err error) { s.Log.Error("broker", "host", m.URL.Host, "err", err) },
		ClientConfig: paho.ClientConfig{
			ClientID: m.Client, EnableManualAcknowledgment: true,
			OnClientError: func(err error) { s.Log.Error("broker", "host", m.URL.Host, "err", err) },
			OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
				var labels store.Labels
				for _, u := range p.Packet.Properties.User {
					if u.Key == "label" && labels.Set(u.Value) != nil {
						s.Log.Warn("the label of a message is left out", "label", u.Value)
					}
				}
				device := "" // of a topic that does not match, which is refused
				if of := topics.FindStringSubmatch(p.Packet.Topic); of != nil {
					device = of[1]
				}
				if s.message(ctx, device, labels, p.Packet.Payload) {
					return true, p.Client.Ack(p.Packet)
				}
				retry()
				return true, nil
			}},
		},
	}
	if m.URL.User != nil {
		config.ConnectUsername = m.URL.User.Username()
		password, _ := m.URL.User.Password()
		config.ConnectPassword = []byte(password)
	}
	for ctx.Err() == nil {
		session, stop := context.WithCancel(ctx)
		c, err := autopaho.NewConnection(session, config)
		if err != nil {
			stop()
			return err
		}
		select {
		case <-ctx.Done():
		case <-again:
		}
		stop()
		<-c.Done()
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
		}
	}
	return nil
}

// message processes a message. done is false if the broker should send it again.
func (s *Server) message(ctx context.Context, device string, labels store.Labels, payload []byte) (done bool) {
	c := &client{device: device}
	err := s.admit(c)
	var text []byte
	if err == nil {
		text, err = s.text(bytes.NewReader(payload), "")
	}
	if err == nil {
		_, err = s.take(ctx, c, &ingest.Upload{Device: device, Labels: labels, Received: time.Now(), Text: text})
	}
	result := "accepted"
	var no *refusal
	if errors.As(err, &no) {
		result = no.result
		s.Log.Log(ctx, slog.LevelWarn, "message refused", "device", device, "err", no.err)
	}
	s.Metrics.Uploads.WithLabelValues(result).Inc()
	return result != "full" && result != "failed"
}
