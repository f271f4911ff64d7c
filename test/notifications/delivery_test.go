// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifications

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/notifytest"
)

// notifytestWebhook returns a webhook that verifies signatures.
func notifytestWebhook(t *testing.T) *notifytest.Receiver {
	t.Helper()
	return notifytest.Webhook(t, webhookSecret)
}

// mirrored creates a namespace with a mirror of its ConfigMaps.
func (s *testCluster) mirrored(t *testing.T, namespace string) {
	t.Helper()
	m := s.NewMirror(t, namespace)
	m.Watch(t, "all", "configmaps")
	m.Settled(t)
}

// testRotation has a receiver reject the credentials until they are changed.
func (s *testCluster) testRotation(t *testing.T) {
	const namespace = "rotation"
	s.mirrored(t, namespace)
	const before, after = "xoxb-before-the-rotation", "xoxb-after-the-rotation"
	bot := notifytest.SlackAPI(t, after)
	s.secret(t, namespace, "bot", "token: "+before)
	s.sink(t, namespace, "chat", strings.Replace(inbox{bot}.sink(), "webhook: {url: ", "slack: {secretRef: {name: bot}, channel: C024BE91L, apiURL: ", 1),
		prompt, "events: [Change]")
	s.ConfigMap(t, namespace, "web", "a: '1'")
	failing := s.status(t, namespace, "chat", "fails", func(status *v1alpha1.NotificationSinkStatus) bool { return status.Failures > 0 })
	if strings.Contains(failing.LastError, before) || !strings.Contains(failing.LastError, "invalid_auth") {
		t.Errorf("lastError = %q", failing.LastError)
	}
	s.secret(t, namespace, "bot", "token: "+after)
	s.delivered(t, namespace, "chat", 1)
	s.logLacks(t, before, after)
}

// retryAfter is what a busy receiver requests.
const retryAfter = 3 * time.Second

// testRetryAfter has a receiver be busy.
func (s *testCluster) testRetryAfter(t *testing.T) {
	const namespace = "busy"
	s.mirrored(t, namespace)
	r := newInbox(t)
	r.Next(notifytest.Answer{Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": fmt.Sprint(retryAfter.Seconds())}})
	s.sink(t, namespace, "chat", r.sink(), prompt, "events: [Change]")
	s.ConfigMap(t, namespace, "web", "a: '1'")
	s.delivered(t, namespace, "chat", 1)
	letters := r.letters()
	if len(letters) != 2 || letters[0].ID != letters[1].ID {
		t.Fatalf("%+v", letters)
	}
	requests := r.Requests()
	if waited := requests[1].Time.Sub(requests[0].Time); waited < retryAfter {
		t.Errorf("sent again after %s, want %s", waited, retryAfter)
	}
}

// deliveryTimeout is after how long the delivery of a message is given up and repeated.
const deliveryTimeout = 30 * time.Second

// testHangingReceiver has one receiver hang while another gets messages.
func (s *testCluster) testHangingReceiver(t *testing.T) {
	const namespace = "hanging"
	s.mirrored(t, namespace)
	hanging, well := newInbox(t), newInbox(t)
	hanging.Next(notifytest.Answer{Hangs: true})
	s.sink(t, namespace, "hanging", hanging.sink(), prompt, "events: [Change]")
	s.sink(t, namespace, "well", well.sink(), prompt, "events: [Change]")
	s.ConfigMap(t, namespace, "first", "a: '1'")
	hanging.gets(t, "Change ConfigMap first")
	for _, name := range []string{"second", "third"} {
		s.ConfigMap(t, namespace, name, "a: '1'")
		well.gets(t, "Change ConfigMap "+name)
	}
	well.gets(t, "Change ConfigMap first")
	// If it was sent again, the others did not overtake it. The receiver counts from when it has read a request, which may have been late.
	if requests := hanging.Requests(); len(requests) > 1 && requests[1].Time.Sub(requests[0].Time) < deliveryTimeout/2 {
		t.Errorf("the receiver that hangs got %d requests", len(requests))
	}
}

// testRefusedAddresses has sinks lead to the server's own surroundings.
func (s *testCluster) testRefusedAddresses(t *testing.T) {
	const namespace = "surroundings"
	s.mirrored(t, namespace)
	for name, host := range map[string]string{"metadata": "169.254.169.254", "host": hostAddress(t)} {
		if host == "" {
			continue // The machine has only loopback.
		}
		s.jane.Apply(t, fmt.Sprintf(sinkOf, name, namespace, fmt.Sprintf("webhook: {url: 'http://%s:9/'}\n  events: [Change]\n  %s", host, prompt)))
		t.Run(name, func(t *testing.T) {
			s.Ready(t, namespace, "sink/"+name)
			s.ConfigMap(t, namespace, "web-"+name, "a: '1'")
			status := s.status(t, namespace, name, "fails", func(status *v1alpha1.NotificationSinkStatus) bool { return status.LastError != "" })
			if !strings.Contains(status.LastError, host) || !strings.Contains(status.LastError, "--allow-destinations can allow them") {
				t.Errorf("lastError = %q", status.LastError)
			}
			if status.Messages > 0 {
				t.Errorf("%d messages were delivered", status.Messages)
			}
		})
	}
}

// hostAddress returns an address of the host's network interfaces that is not loopback; empty if there is none.
func hostAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	return ""
}

// testPath is the path of the subresource test of a sink.
func testPath(namespace, sink string) string {
	return "/apis/configbutler.ai/v1alpha1/namespaces/" + namespace + "/notificationsinks/" + sink + "/test"
}

// testTestMessage sends a test, and makes a dry run of one.
func (s *testCluster) testTestMessage(t *testing.T) {
	const namespace = "tested"
	s.CreateNamespace(t, namespace)
	r := newInbox(t)
	s.sink(t, namespace, "chat", r.sink(), prompt, "events: [Failed]")
	create := func(query, body string) string {
		t.Helper()
		out, err := s.jane.Kubectl.Feed(t.Context(), body, "create", "--raw", testPath(namespace, "chat")+query, "-f", "-")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	dry := create("?dryRun=All", `{"spec":{"event":"Failed"}}`)
	for _, want := range []string{"Nothing was sent (dry run)", `"body":`, "dedupeKey", "application/json"} {
		if !strings.Contains(dry, want) {
			t.Errorf("dry run returned %s, want %q", dry, want)
		}
	}
	if requests := r.Requests(); len(requests) > 0 {
		t.Errorf("a dry run sent %d messages", len(requests))
	}
	if sent := create("", "{}"); !strings.Contains(sent, `"delivered":true`) {
		t.Errorf("the test returned %s", sent)
	}
	if got := lines(r.notifications()); len(got) != 1 || !strings.HasPrefix(got[0], "Prompted Environment ") {
		t.Errorf("received %q", got)
	}
	create("", `{"spec":{"digest":true}}`)
	if letters := r.letters(); len(letters) != 2 || letters[1].Count != len(v1alpha1.NotificationEvents()) {
		t.Errorf("%+v", letters)
	}
	status := s.status(t, namespace, "chat", "is unchanged", func(*v1alpha1.NotificationSinkStatus) bool { return true })
	if status.Messages != 0 {
		t.Errorf("tests are counted: %+v", status)
	}
}
