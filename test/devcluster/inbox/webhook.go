// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// maxMessage is the maximum size of a message, in bytes.
const maxMessage = 1 << 20

// webhook verifies the signatures of messages, and prints a line for each notification.
type webhook struct {
	verifier *standardwebhooks.Webhook

	mutex sync.Mutex
	out   io.Writer
}

var _ http.Handler = &webhook{}

func newWebhook(secret string, out io.Writer) (*webhook, error) {
	verifier, err := standardwebhooks.NewWebhook(secret)
	return &webhook{verifier: verifier, out: out}, err
}

// received is the data of a CloudEvent: a notification, or several.
type received struct {
	notification
	Notifications []notification `json:"notifications"`
}

type notification struct {
	Event     string   `json:"event"`
	Headline  string   `json:"headline"`
	Error     string   `json:"error"`
	ChangedBy []author `json:"changedBy"`
	Actor     string   `json:"actor"`
}

type author struct {
	Name string `json:"name"`
}

// String reads like "Prompted   Environment teams/staging: 1 workload changed   changed by jane".
func (n notification) String() string {
	parts := []string{fmt.Sprintf("%-11s", n.Event), n.Headline}
	var names []string
	for _, by := range n.ChangedBy {
		names = append(names, by.Name)
	}
	if len(names) > 0 {
		parts = append(parts, "changed by "+strings.Join(names, ", "))
	}
	if n.Actor != "" {
		parts = append(parts, "requested by "+n.Actor)
	}
	if n.Error != "" {
		parts = append(parts, n.Error)
	}
	return strings.Join(parts, "  ")
}

// ServeHTTP accepts a message after it has been printed.
func (w *webhook) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, maxMessage))
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	if err := w.verifier.Verify(body, request.Header); err != nil {
		http.Error(response, err.Error(), http.StatusUnauthorized)
		return
	}
	if err := w.print(body); err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = io.WriteString(response, "printed\n")
}

func (w *webhook) print(body []byte) error {
	var message received
	if err := json.Unmarshal(body, &message); err != nil {
		return fmt.Errorf("decode the message: %w", err)
	}
	notifications := message.Notifications
	if message.Headline != "" {
		notifications = append(notifications, message.notification)
	}
	if len(notifications) == 0 {
		return errors.New("the message has no notification")
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, n := range notifications {
		if _, err := fmt.Fprintln(w.out, n); err != nil {
			return err
		}
	}
	return nil
}
