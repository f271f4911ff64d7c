// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const syncPath = "/apis/configbutler.ai/v1alpha1/syncpipelines/assistant/sync"

// server answers as an API server with one pipeline does.
type server struct {
	*httptest.Server
	// answer is that to a request for a run.
	answer func(*v1alpha1.PipelineSync) (any, int)
	// lives are what a watch shows of the pipeline, one after the other.
	lives []v1alpha1.SyncPipelineStatus
	// deleted is whether the pipeline is deleted after that.
	deleted bool
	// requests are those for runs, with the query.
	requests []v1alpha1.PipelineSync
	queries  []string
}

func serve(t *testing.T, answer func(*v1alpha1.PipelineSync) (any, int), lives ...v1alpha1.SyncPipelineStatus) *server {
	t.Helper()
	s := &server{answer: answer, lives: lives}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	switch {
	case r.URL.Path == syncPath && r.Method == http.MethodPost:
		var request v1alpha1.PipelineSync
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.requests, s.queries = append(s.requests, request), append(s.queries, r.URL.RawQuery)
		answer, code := s.answer(&request)
		w.WriteHeader(code)
		_ = encoder.Encode(answer)
	case r.URL.Query().Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
	case r.URL.Query().Get("watch") != "":
		for i := range s.lives[1:] {
			_ = encoder.Encode(map[string]any{"type": "MODIFIED", "object": s.pipeline(i + 1)})
		}
		if s.deleted {
			_ = encoder.Encode(map[string]any{"type": "DELETED", "object": s.pipeline(len(s.lives) - 1)})
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		_ = encoder.Encode(v1alpha1.SyncPipelineList{
			TypeMeta: metav1.TypeMeta{APIVersion: "configbutler.ai/v1alpha1", Kind: "SyncPipelineList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []v1alpha1.SyncPipeline{s.pipeline(0)},
		})
	}
}

func (s *server) pipeline(life int) v1alpha1.SyncPipeline {
	return v1alpha1.SyncPipeline{
		TypeMeta:   metav1.TypeMeta{APIVersion: "configbutler.ai/v1alpha1", Kind: "SyncPipeline"},
		ObjectMeta: metav1.ObjectMeta{Name: "assistant", ResourceVersion: fmt.Sprint(life + 1)},
		Status:     s.lives[life],
	}
}

// call runs the plugin, and returns what it prints, its exit code and its error.
func (s *server) call(ctx context.Context, args ...string) (out, progress string, code int, err error) {
	return s.callExactly(ctx, append(args, "--server", s.URL, "--kubeconfig", "/dev/null")...)
}

// callExactly runs the plugin with no other arguments.
func (s *server) callExactly(ctx context.Context, args ...string) (out, progress string, code int, err error) {
	streams, _, printed, said := genericiooptions.NewTestIOStreams()
	command := app.NewCommand(streams)
	command.SetArgs(args)
	err = command.ExecuteContext(ctx)
	return printed.String(), said.String(), app.ExitCode(err), err
}

func run(phase v1alpha1.PipelineRunPhase, sinks ...v1alpha1.PipelineRunSink) *v1alpha1.PipelineRun {
	run := &v1alpha1.PipelineRun{ID: "r1", Scope: v1alpha1.PipelineScopeAll, Phase: phase, Sinks: sinks}
	for _, sink := range sinks {
		run.Total, run.Done = run.Total+sink.Total, run.Done+sink.Done
	}
	return run
}

// accepted is the answer to a request whose run is yet to be followed, or over.
func accepted(run *v1alpha1.PipelineRun) func(*v1alpha1.PipelineSync) (any, int) {
	return func(request *v1alpha1.PipelineSync) (any, int) {
		answer := request.DeepCopy()
		answer.TypeMeta = metav1.TypeMeta{APIVersion: "configbutler.ai/v1alpha1", Kind: "PipelineSync"}
		answer.Status = v1alpha1.PipelineSyncStatus{Accepted: true, ID: "r1", Run: run, Message: "The request is accepted"}
		return answer, http.StatusCreated
	}
}

func refused(err *apierrors.StatusError) func(*v1alpha1.PipelineSync) (any, int) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return func(*v1alpha1.PipelineSync) (any, int) { return status, int(status.Code) }
}

// waitNotice is printed before a wait without a limit.
const waitNotice = "Waiting until the run has ended. Ctrl-C ends the wait, and the run continues; --timeout limits the wait\n"

func TestSyncPipelineFollowsTheRun(t *testing.T) {
	sending := run(v1alpha1.PipelineRunSending, v1alpha1.PipelineRunSink{Name: "index", Total: 3, Done: 1, Answer: "503: busy"})
	finished := run(v1alpha1.PipelineRunFinished, v1alpha1.PipelineRunSink{Name: "index", Total: 3, Done: 3, Answer: "200: upserted 3"})
	s := serve(t, accepted(nil),
		v1alpha1.SyncPipelineStatus{PendingRequests: []v1alpha1.PendingPipelineRequest{{ID: "r1"}}},
		v1alpha1.SyncPipelineStatus{CurrentRun: sending}, v1alpha1.SyncPipelineStatus{LastRun: finished})
	out, progress, code, err := s.call(t.Context(), "sync-pipeline", "assistant", "--scope", "crds", "--full")
	if err != nil || code != 0 {
		t.Fatal(code, err)
	}
	want := "SINK    SENT   REJECTED   LEFT   ANSWER\nindex   3      0          0      200: upserted 3\n"
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(progress, waitNotice+"Waiting for the run before it\n") {
		t.Errorf("said %q", progress)
	}
	if spec := (v1alpha1.PipelineSyncSpec{Scope: v1alpha1.PipelineScopeDefinitions, Full: true}); len(s.requests) != 1 ||
		s.requests[0].Spec != spec {
		t.Errorf("asked for %+v", s.requests)
	}
}

func TestSyncPipelineEnds(t *testing.T) {
	rejected := run(v1alpha1.PipelineRunFinished,
		v1alpha1.PipelineRunSink{Name: "a", Total: 2, Done: 2},
		v1alpha1.PipelineRunSink{Name: "b", Total: 2, Done: 2, Rejected: 1, Answer: "400: bad\u202e"})
	goesOn := v1alpha1.SyncPipelineStatus{CurrentRun: run(v1alpha1.PipelineRunListing)}
	pipelines := v1alpha1.Resource("syncpipelines")
	tests := map[string]struct {
		answer       func(*v1alpha1.PipelineSync) (any, int)
		life         v1alpha1.SyncPipelineStatus
		args         []string
		code         int
		out, problem string
	}{
		"no changes are left": {answer: accepted(run(v1alpha1.PipelineRunFinished)), out: "The request is accepted\n"},
		"somebody refuses something": {
			answer: accepted(rejected), code: 3, out: `b      1      1          0      400: bad\u202e`, problem: "not everything got to b",
		},
		"nobody waits": {answer: accepted(nil), args: []string{"--wait=false"}, out: "The request is accepted\n"},
		"a dry run":    {answer: accepted(nil), args: []string{"--dry-run"}, out: "The request is accepted\n"},
		"time is up": {
			answer: accepted(nil), life: goesOn, args: []string{"--timeout", "300ms"},
			code: 124, problem: "the run continues, and kubectl get syncpipeline assistant shows its progress",
		},
		"time is up before the response": {
			answer: accepted(nil), args: []string{"--timeout", "1ns"}, code: 124,
			problem: "the server has not responded yet; kubectl get syncpipelines assistant shows whether it has accepted the request",
		},
		"another run has come since": {answer: accepted(nil), life: v1alpha1.SyncPipelineStatus{}, out: "The request is accepted\n"},
		"no permission":              {answer: refused(apierrors.NewForbidden(pipelines, "assistant", io.EOF)), code: 5, problem: "is forbidden"},
		"it is suspended": {
			answer: refused(apierrors.NewConflict(pipelines, "assistant", io.EOF)), code: 4, problem: "cannot be fulfilled",
		},
		"no such pipeline": {answer: refused(apierrors.NewNotFound(pipelines, "assistant")), code: 2, problem: "not found"},
		"another dry run":  {args: []string{"--dry-run=client"}, code: 2, problem: `--dry-run is "client": it is none or server`},
		"another scope":    {args: []string{"--scope", "pods"}, code: 2, problem: `--scope is "pods": it is all, crds or instances`},
		"as JSON": {
			answer: accepted(run(v1alpha1.PipelineRunFinished)), args: []string{"-o", "jsonpath={.status.run.phase}"}, out: "Finished",
		},
		"two names": {args: []string{"another"}, code: 2, problem: "accepts 1 arg(s)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tt.answer, tt.life)
			out, _, code, err := s.call(t.Context(), append([]string{"sync-pipeline", "assistant"}, tt.args...)...)
			if code != tt.code || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("ends with %d: %v", code, err)
			}
			if !printed(out, tt.out) {
				t.Errorf("printed %q", out)
			}
		})
	}
}

// TestSyncPipelineWithItsType names the pipeline as kubectl does.
func TestSyncPipelineWithItsType(t *testing.T) {
	s := serve(t, accepted(run(v1alpha1.PipelineRunFinished)))
	for _, argument := range []string{"syncpipeline/assistant", "pipe/assistant"} {
		if _, _, code, err := s.call(t.Context(), "sync-pipeline", argument); code != 0 || err != nil {
			t.Errorf("%s: ends with %d: %v", argument, code, err)
		}
	}
	if _, _, code, err := s.call(t.Context(), "sync-pipeline", "environment/alice"); code != 2 || err == nil ||
		!strings.Contains(err.Error(), "it takes syncpipeline") {
		t.Errorf("ends with %d: %v", code, err)
	}
}

// TestSyncPipelineIsDeleted checks that the error does not say that the run of a deleted pipeline continues.
func TestSyncPipelineIsDeleted(t *testing.T) {
	s := serve(t, accepted(nil), v1alpha1.SyncPipelineStatus{CurrentRun: run(v1alpha1.PipelineRunListing)})
	s.deleted = true
	_, _, code, err := s.call(t.Context(), "sync-pipeline", "assistant")
	if code != 2 || err == nil || !strings.Contains(err.Error(), "not found") || strings.Contains(err.Error(), "continues") {
		t.Errorf("ends with %d: %v", code, err)
	}
}

// TestSyncPipelineSaysHowToEndTheWait checks that the line before a wait names its limit, and that there is none without a wait.
func TestSyncPipelineSaysHowToEndTheWait(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"a limit": {
			[]string{"--timeout", "5m"}, "Waiting until the run has ended, for at most 5m0s. Ctrl-C ends the wait, and the run continues\n",
		},
		"no wait": {[]string{"--wait=false"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, accepted(nil), v1alpha1.SyncPipelineStatus{LastRun: run(v1alpha1.PipelineRunFinished)})
			_, progress, _, err := s.call(t.Context(), append([]string{"sync-pipeline", "assistant"}, tt.args...)...)
			if err != nil || progress != tt.want {
				t.Errorf("printed %q, %v, want %q", progress, err, tt.want)
			}
		})
	}
}

func TestHelpSaysWhatTheCommandsDo(t *testing.T) {
	out, _, _, err := serve(t, nil).call(t.Context())
	if err != nil || !strings.HasPrefix(out, "Follow changes in Git, take them back, and sync environments.\n\nStart with: kubectl slipstream check\n") {
		t.Errorf("printed %q, %v", out, err)
	}
}

func TestSyncPipelineIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := func(request *v1alpha1.PipelineSync) (any, int) {
		defer cancel()
		return accepted(nil)(request)
	}
	s := serve(t, asked, v1alpha1.SyncPipelineStatus{CurrentRun: run(v1alpha1.PipelineRunListing)})
	if _, _, code, err := s.call(ctx, "sync-pipeline", "assistant"); code != 130 {
		t.Errorf("ends with %d: %v", code, err)
	}
}
