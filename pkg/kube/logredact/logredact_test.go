// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package logredact_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/configbutler/slipstream/pkg/kube/logredact"
)

// Clients log what servers answer if one lets them, Secrets included.
func TestBodiesAreNotLogged(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"password":"aHVzaA=="}}`))
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for name, logs := range map[string]bool{"as it is": true, "without bodies": false} {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(10), ktesting.BufferLogs(true)))
		ctx := klog.NewContext(context.Background(), logger.WithName("test").WithValues("key", "value"))
		if !logs {
			ctx = logredact.WithoutBodies(ctx)
		}
		secret, err := client.CoreV1().Secrets("shop").Get(ctx, "a", metav1.GetOptions{})
		if err != nil || string(secret.Data["password"]) != "hush" {
			t.Fatalf("%v, %v", secret, err)
		}
		klog.FromContext(ctx).V(5).WithName("more").WithValues("and", "more").Info("An ordinary line")
		buffer, ok := logger.GetSink().(ktesting.Underlier)
		if !ok {
			t.Fatal("the logger keeps nothing")
		}
		text := buffer.GetBuffer().String()
		if strings.Contains(text, "aHVzaA==") != logs {
			t.Errorf("%s: the log holds\n%s", name, text)
		}
		if !strings.Contains(text, "An ordinary line") {
			t.Errorf("%s: the log lacks what may be said:\n%s", name, text)
		}
	}
}
