// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/access/egress"
	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// fixture is a cluster with a sink.
type fixture struct {
	*testing.T
	cluster *fake.Clientset
	sink    v1alpha1.NotificationSink
	dial    outbound.Dial
	// environment has the proxies of the environment.
	environment *proxy.Environment
	// resolver resolves names behind proxies.
	resolver *net.Resolver
	events   events.Recorder
	// secrets must be in no result.
	secrets []string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, cluster: fake.NewClientset(), dial: (&net.Dialer{}).DialContext}
	f.sink.Namespace, f.sink.Name = "teams", "chat"
	return f
}

var secretRef = v1alpha1.SecretReference{Name: "receiver"}

// secret creates or updates the Secret of the sink.
func (f *fixture) secret(data map[string]string) {
	f.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "receiver"}, Data: map[string][]byte{}}
	for key, value := range data {
		secret.Data[key] = []byte(value)
		if key != "username" {
			f.secrets = append(append(f.secrets, strings.TrimSpace(value)), strings.Fields(value)...)
		}
	}
	secrets := f.cluster.CoreV1().Secrets("teams")
	if _, err := secrets.Update(f.Context(), secret, metav1.UpdateOptions{}); err == nil {
		return
	}
	if _, err := secrets.Create(f.Context(), secret, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

// network allows proxies to connect to this host only.
func (f *fixture) network() *proxy.Network {
	f.Helper()
	policy, err := egress.NewPolicy([]string{egress.Loopback})
	if err != nil {
		f.Fatal(err)
	}
	return &proxy.Network{Direct: f.dial, Check: policy.Check, Environment: f.environment, Resolver: f.resolver}
}

func (f *fixture) receiver() delivery.Receiver {
	f.Helper()
	receiver, err := delivery.New(delivery.Config{
		Secrets: f.cluster.CoreV1(), Events: f.events, Network: f.network(), Clock: clocktesting.NewFakePassiveClock(noon), Source: "/clusters/test",
	}, &f.sink)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(receiver.Close)
	return receiver
}

// deliver sends a message with a new receiver, and checks what all results must have.
func (f *fixture) deliver(m *message.Message, thread string) delivery.Result {
	f.Helper()
	return f.deliverTo(f.Context(), f.receiver(), m, thread)
}

func (f *fixture) deliverTo(ctx context.Context, receiver delivery.Receiver, m *message.Message, thread string) delivery.Result {
	f.Helper()
	got := receiver.Deliver(ctx, m, thread)
	if got.Message == "" || strings.ContainsFunc(got.Message, func(r rune) bool { return !unicode.IsPrint(r) }) {
		f.Errorf("message %q is not one printable line", got.Message)
	}
	for _, secret := range f.secrets {
		// Shorter ones are parts of words.
		if len(secret) > 4 && strings.Contains(got.Message, secret) {
			f.Errorf("message shows %q: %s", secret, got.Message)
		}
	}
	return got
}

// expect delivers a message and expects a result. HOST in the text stands for the host of the receiver.
func (f *fixture) expect(host string, want delivery.Result) {
	f.Helper()
	want.Message = strings.ReplaceAll(want.Message, "HOST", host)
	if got := f.deliver(about(v1alpha1.NotifyPrompted), ""); got != want {
		f.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// about returns a message with a sample of each event.
func about(events ...v1alpha1.NotificationEvent) *message.Message {
	m := &message.Message{ID: "7c0b6f9a-0000-4000-8000-000000000001", Time: noon, Cluster: "test"}
	for _, event := range events {
		m.Notifications = append(m.Notifications, message.Sample(event, false, noon))
	}
	m.Counts = message.CountsOf(m.Notifications)
	return m
}

// threaded returns a message of a thread.
func threaded(id string) *message.Message {
	m := about(v1alpha1.NotifyPrompted)
	m.ID, m.Thread = id, "environment/alice"
	return m
}
