// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// tester answers tests of the sink slack in the namespace shop, with err if it is set, and keeps the last request.
type tester struct {
	status  v1alpha1.NotificationTestStatus
	err     *apierrors.StatusError
	request v1alpha1.NotificationTest
	query   string
}

func (s *tester) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodPost || r.URL.Path != ofGroup+"/namespaces/shop/notificationsinks/slack/test" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	s.request, s.query = v1alpha1.NotificationTest{}, r.URL.RawQuery
	if err := json.NewDecoder(r.Body).Decode(&s.request); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if s.err != nil {
		status := s.err.Status()
		status.Kind, status.APIVersion = "Status", "v1"
		w.WriteHeader(int(status.Code))
		_ = json.NewEncoder(w).Encode(status)
		return
	}
	answer := s.request
	answer.TypeMeta, answer.Status = typeMeta("NotificationTest"), s.status
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(answer)
}

// call runs notify test slack, with standard input.
func (s *tester) call(t *testing.T, input string, args ...string) (out string, code int, err error) {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	streams, in, printed, _ := genericiooptions.NewTestIOStreams()
	in.WriteString(input)
	command := app.NewCommand(streams)
	command.SetArgs(append([]string{"notify", "test", "slack", "-n", "shop", "--server", server.URL, "--kubeconfig", "/dev/null"}, args...))
	err = command.ExecuteContext(t.Context())
	return printed.String(), app.ExitCode(err), err
}

func delivered() v1alpha1.NotificationTestStatus {
	return v1alpha1.NotificationTestStatus{
		Delivered: true, Message: "200 OK: ok", Title: "Test: shop\x1b[2J", Text: "This is a test.\n\nChanged: web\n", Body: `{"text":"x"}`,
		ContentType: "application/json",
	}
}

func TestNotifyTestPrints(t *testing.T) {
	const message = "Test: shop\\u001b[2J\n\n  This is a test.\n\n  Changed: web\n"
	rejected, dry := delivered(), delivered()
	rejected.Delivered, rejected.Message = false, "400 Bad Request:\x1b no_text"
	dry.Delivered, dry.Message = false, "Nothing was sent (dry run)"
	forbidden := apierrors.NewForbidden(v1alpha1.Resource("notificationsinks"), "slack", nil)
	for name, test := range map[string]struct {
		tester tester
		args   []string
		out    string
		code   int
		err    string
	}{
		"delivered": {tester{status: delivered()}, nil, message + "\nDelivered: 200 OK: ok\n", 0, ""},
		"text":      {tester{status: delivered()}, []string{"-o", "text"}, message + "\nDelivered: 200 OK: ok\n", 0, ""},
		"rejected": {
			tester{status: rejected}, nil, message, 3, `notificationsink/slack did not deliver the message: 400 Bad Request:\u001b no_text`,
		},
		"rejected, as a body": {tester{status: rejected}, []string{"-o", "body"}, "{\"text\":\"x\"}\n", 3, "no_text"},
		"a dry run":           {tester{status: dry}, []string{"--dry-run"}, message + "\nNothing was sent (dry run)\n", 0, ""},
		"body":                {tester{status: dry}, []string{"--dry-run=server", "-o", "body"}, "{\"text\":\"x\"}\n", 0, ""},
		"a field":             {tester{status: delivered()}, []string{"-o", "jsonpath={.kind} {.status.delivered}"}, "NotificationTest true", 0, ""},
		"forbidden":           {tester{err: forbidden}, nil, "", 5, "forbidden"},
		"another format":      {tester{status: delivered()}, []string{"-o", "html"}, "", 2, "html"},
	} {
		t.Run(name, func(t *testing.T) {
			out, code, err := test.tester.call(t, "", test.args...)
			if diff := cmp.Diff(test.out, out); diff != "" || code != test.code {
				t.Errorf("exit code %d, %v (-want +got):\n%s", code, err, diff)
			}
			if test.err == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}

func TestNotifyTestRequests(t *testing.T) {
	file := filepath.Join(t.TempDir(), "template.yaml")
	if err := os.WriteFile(file, []byte("title: '{{.Name}}'\ntext: |\n  {{.Headline}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const prompted = v1alpha1.NotifyPrompted
	for name, test := range map[string]struct {
		args  []string
		input string
		want  v1alpha1.NotificationTestSpec
		dry   bool
	}{
		"nothing":       {want: v1alpha1.NotificationTestSpec{Event: prompted}},
		"an event":      {args: []string{"--event", "failed"}, want: v1alpha1.NotificationTestSpec{Event: v1alpha1.NotifyFailed}},
		"a digest":      {args: []string{"--digest", "--dry-run=server"}, want: v1alpha1.NotificationTestSpec{Event: prompted, Digest: true}, dry: true},
		"a title":       {args: []string{"--title", "a"}, want: v1alpha1.NotificationTestSpec{Event: prompted, Template: &v1alpha1.NotificationTemplate{Title: "a"}}},
		"a text":        {args: []string{"--text", "b"}, want: v1alpha1.NotificationTestSpec{Event: prompted, Template: &v1alpha1.NotificationTemplate{Text: "b"}}},
		"a file":        {args: []string{"-f", file}, want: v1alpha1.NotificationTestSpec{Event: prompted, Template: &v1alpha1.NotificationTemplate{Title: "{{.Name}}", Text: "{{.Headline}}\n"}}},
		"another input": {args: []string{"-f", "-"}, input: "text: c", want: v1alpha1.NotificationTestSpec{Event: prompted, Template: &v1alpha1.NotificationTemplate{Text: "c"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := tester{status: delivered()}
			if _, code, err := s.call(t, test.input, test.args...); code != 0 {
				t.Fatalf("exit code %d, %v", code, err)
			}
			if diff := cmp.Diff(test.want, s.request.Spec); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if dry := strings.Contains(s.query, "dryRun=All"); dry != test.dry {
				t.Errorf("query %q, want a dry run: %t", s.query, test.dry)
			}
		})
	}
}

func TestNotifyTestUsage(t *testing.T) {
	for name, test := range map[string]struct {
		args  []string
		input string
		says  string
	}{
		"another event":        {[]string{"--event", "Broken"}, "", "Prompted, "},
		"an event in a digest": {[]string{"--event", "Failed", "--digest"}, "", "event digest"},
		"two templates":        {[]string{"-f", "-", "--title", "a"}, "", "filename title"},
		"no such file":         {[]string{"-f", "/nonexistent"}, "", "--filename: open /nonexistent"},
		"another field":        {[]string{"-f", "-"}, "titel: a", "title and text"},
		"an empty file":        {[]string{"-f", "-"}, "", "neither title nor text"},
		"a large file":         {[]string{"-f", "-"}, strings.Repeat("#", 1<<20+1), "1 MiB"},
		"another dry run":      {[]string{"--dry-run=client"}, "", "none or server"},
		"two sinks":            {[]string{"mail"}, "", "accepts 1 arg"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tester{status: delivered()}
			if _, code, err := s.call(t, test.input, test.args...); code != 2 || err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("exit code %d, %v; want %q", code, err, test.says)
			}
			if s.query != "" {
				t.Error("a request was made")
			}
		})
	}
}
