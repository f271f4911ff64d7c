// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry"
)

// pipeline has two sinks, and defaults for the rest.
func pipeline() *configbutler.SyncPipeline {
	said := &v1alpha1.SyncPipeline{
		ObjectMeta: metav1.ObjectMeta{Name: "knowledge"},
		Spec: v1alpha1.SyncPipelineSpec{Sinks: []v1alpha1.PipelineSink{
			{Name: "assistant", HTTP: &v1alpha1.HTTPSink{URL: "https://assistant.example.com", Format: v1alpha1.PipelineFormatDotAI}},
			{Name: "inventory", HTTP: &v1alpha1.HTTPSink{URL: "https://inventory.example.com", Format: v1alpha1.PipelineFormatCloudEvents}},
		}},
	}
	v1alpha1.SetObjectDefaults_SyncPipeline(said)
	out := &configbutler.SyncPipeline{}
	if err := v1alpha1.Convert_v1alpha1_SyncPipeline_To_configbutler_SyncPipeline(said, out, nil); err != nil {
		panic(err)
	}
	return out
}

// by is a request of a user, for something without a namespace.
func by(t *testing.T, name string) context.Context {
	t.Helper()
	return genericapirequest.WithUser(inCluster(t), &user.DefaultInfo{Name: name})
}

// inCluster returns the context of a request without a user, for an object without a namespace.
func inCluster(t *testing.T) context.Context {
	t.Helper()
	return genericapirequest.WithNamespace(t.Context(), "")
}

// newPipeline stores the SyncPipeline knowledge as change makes it.
func newPipeline(t *testing.T, storage *registry.Storage, change func(*configbutler.SyncPipeline)) *configbutler.SyncPipeline {
	t.Helper()
	wanted := pipeline()
	change(wanted)
	if _, err := storage.Endpoints["syncpipelines"].(creator).Create(
		by(t, "eve"), wanted, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return storedPipeline(t, storage)
}

func sending(scope configbutler.PipelineScope) *configbutler.PipelineSync {
	return &configbutler.PipelineSync{Spec: configbutler.PipelineSyncSpec{Scope: scope}}
}

func storedPipeline(t *testing.T, storage *registry.Storage) *configbutler.SyncPipeline {
	t.Helper()
	obj, err := storage.Endpoints["syncpipelines"].(rest.Getter).Get(inCluster(t), "knowledge", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*configbutler.SyncPipeline)
}

// editPipeline changes the pipeline as it is stored, through an endpoint.
func editPipeline(ctx context.Context, storage *registry.Storage, endpoint string, change func(*configbutler.SyncPipeline)) error {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		edited := old.DeepCopyObject().(*configbutler.SyncPipeline)
		change(edited)
		return edited, nil
	})
	_, _, err := storage.Endpoints[endpoint].(rest.Updater).Update(toward(ctx, endpoint), "knowledge", info,
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

// execute writes what the controller of pipelines does of the first request, one status after another.
func execute(
	ctx context.Context, storage *registry.Storage, statuses ...func(*configbutler.SyncPipelineStatus, configbutler.PipelineRun),
) error {
	watched, err := storage.Endpoints["syncpipelines"].(rest.Watcher).Watch(ctx, &internalversion.ListOptions{})
	if err != nil {
		return err
	}
	defer watched.Stop()
	for event := range watched.ResultChan() {
		asked := event.Object.(*configbutler.SyncPipeline).Status.PendingRequests
		if len(asked) == 0 {
			continue
		}
		run := configbutler.PipelineRun{
			ID: asked[0].ID, Actor: asked[0].Actor, Scope: asked[0].Scope, Full: asked[0].Full, StartedAt: asked[0].Time,
		}
		for _, status := range statuses {
			if err := editPipeline(ctx, storage, "syncpipelines/status", func(p *configbutler.SyncPipeline) { status(&p.Status, run) }); err != nil {
				return err
			}
		}
		return nil
	}
	return ctx.Err()
}

func begins(status *configbutler.SyncPipelineStatus, run configbutler.PipelineRun) {
	run.Phase, run.Total, run.Done = configbutler.PipelineRunSending, 24, 3
	status.ObservedGeneration, status.CurrentRun = 1, &run
}

func ends(status *configbutler.SyncPipelineStatus, run configbutler.PipelineRun) {
	run.Phase, run.Total, run.Done, run.FinishedAt = configbutler.PipelineRunFinished, 24, 24, new(metav1.NewTime(noon))
	run.Sinks = []configbutler.PipelineRunSink{
		{Name: "assistant", Total: 12, Done: 12, Answer: "200 OK"},
		{Name: "inventory", Total: 12, Done: 12, Rejected: 2, Answer: "400 Bad Request"},
	}
	status.CurrentRun, status.LastRun, status.PendingRequests = nil, &run, nil
}

func isForgotten(status *configbutler.SyncPipelineStatus, run configbutler.PipelineRun) {
	run.ID = "another"
	ends(status, run)
}

func TestPipelineSyncIsAnswered(t *testing.T) {
	type steps = []func(*configbutler.SyncPipelineStatus, configbutler.PipelineRun)
	for name, tt := range map[string]struct {
		steps steps
		want  string
	}{
		"it finishes": {
			steps: steps{begins, ends},
			want:  "The run has finished: assistant took 12 (200 OK); inventory took 10 and refused 2 (400 Bad Request)",
		},
		"another one finished after it": {
			steps: steps{isForgotten}, want: "The request is finished, and SyncPipeline knowledge no longer describes its run",
		},
	} {
		t.Run(name, func(t *testing.T) {
			storage := newStorage(t)
			newPipeline(t, storage, func(*configbutler.SyncPipeline) {})
			done := make(chan error, 1)
			go func() { done <- execute(inCluster(t), storage, tt.steps...) }()
			request := sending(configbutler.PipelineScopeAll)
			request.Spec.Full = true
			answer, err := ask(by(t, "jane"), storage, "syncpipelines/sync", "knowledge", request)
			if err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if !answer.Status.Accepted || answer.Status.Message != tt.want || answer.Name != "knowledge" {
				t.Errorf("answer for %s: %+v, want %s", answer.Name, answer.Status, tt.want)
			}
			if run := answer.Status.Run; run != nil && (run.ID != answer.Status.ID || run.Actor != "jane" || !run.Full) {
				t.Errorf("run %+v of the request %s", run, answer.Status.ID)
			}
		})
	}
}

// TestPipelineSyncThatTakesLong checks that the answer before the end of a run says where its progress is shown.
func TestPipelineSyncThatTakesLong(t *testing.T) {
	storage := newStorage(t, func(c *registry.Config) { c.WaitTimeout = 500 * time.Millisecond })
	newPipeline(t, storage, func(*configbutler.SyncPipeline) {})
	done := make(chan error, 1)
	go func() { done <- execute(inCluster(t), storage, begins) }()
	answer, err := ask(by(t, "jane"), storage, "syncpipelines/sync", "knowledge", sending(configbutler.PipelineScopeAll))
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want := "The request is accepted; status.pendingRequests of SyncPipeline knowledge has it under the id " + answer.Status.ID +
		" until its run has finished"
	if answer.Status.Run != nil { // seen in time
		want = "The run continues; status.currentRun of SyncPipeline knowledge shows how far it is, now: Sending 3 of 24"
	}
	pending := storedPipeline(t, storage).Status.PendingRequests
	if len(pending) != 1 || pending[0].ID != answer.Status.ID || answer.Status.Message != want {
		t.Errorf("answer %+v, recorded %+v", answer.Status, pending)
	}
}

// The actor is who is authenticated, whatever the request says of itself.
func TestPipelineSyncIsDurable(t *testing.T) {
	storage := newStorage(t, impatient)
	newPipeline(t, storage, func(*configbutler.SyncPipeline) {})
	request := &configbutler.PipelineSync{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"configbutler.ai/actor": "joe"}},
		Spec:       configbutler.PipelineSyncSpec{Scope: configbutler.PipelineScopeDefinitions, Full: true},
		Status:     configbutler.PipelineSyncStatus{ID: "mine", Message: "by joe", Run: &configbutler.PipelineRun{}},
	}
	answer, err := ask(by(t, "jane"), storage, "syncpipelines/sync", "knowledge", request)
	if err != nil {
		t.Fatal(err)
	}
	pending := storedPipeline(t, storage).Status.PendingRequests
	want := []configbutler.PendingPipelineRequest{{
		ID: answer.Status.ID, Actor: "jane", Time: metav1.NewTime(noon), Scope: configbutler.PipelineScopeDefinitions, Full: true,
	}}
	if diff := gocmp.Diff(want, pending); diff != "" || answer.Status.ID == "mine" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if !answer.Status.Accepted || !strings.Contains(answer.Status.Message, answer.Status.ID) || answer.Status.Run != nil {
		t.Errorf("answer %+v", answer.Status)
	}
}

// refusal is a state in which a request is refused.
type refusal struct {
	prepare func(*configbutler.SyncPipeline)
	policy  *configbutler.SyncPolicySpec
	waiting int
	deleted bool
	scope   configbutler.PipelineScope
	is      func(error) bool
	says    string
}

func TestPipelineSyncRefuses(t *testing.T) {
	for name, tt := range map[string]refusal{
		"suspended": {
			prepare: func(p *configbutler.SyncPipeline) { p.Spec.Suspend = true }, is: apierrors.IsConflict,
			says: `when it is lifted: kubectl patch syncpipeline knowledge --type=merge -p '{"spec":{"suspend":false}}'`,
		},
		"all switched off": {
			policy: &configbutler.SyncPolicySpec{Suspend: configbutler.SuspendedWork{Pipelines: true}}, is: apierrors.IsConflict,
			says: `to switch them on: kubectl patch syncpolicy default --type=merge -p '{"spec":{"suspend":{"pipelines":false}}}'`,
		},
		"being deleted": {
			prepare: func(p *configbutler.SyncPipeline) { p.Finalizers = []string{"example.com/hold"} }, deleted: true,
			is: apierrors.IsConflict, says: "is being deleted",
		},
		"too many wait":        {waiting: 10, is: apierrors.IsTooManyRequests, says: "10 requests wait for this pipeline"},
		"a scope that is none": {scope: "Everything", is: apierrors.IsInvalid, says: "spec.scope"},
		"a scope that is off": {
			prepare: func(p *configbutler.SyncPipeline) { p.Spec.Instances.Enabled = ptr.To(false) },
			scope:   configbutler.PipelineScopeInstances, is: apierrors.IsInvalid, says: "must be CustomResourceDefinitions or All",
		},
	} {
		for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
			t.Run(fmt.Sprint(name, dryRun), func(t *testing.T) { tt.check(t, dryRun) })
		}
	}
}

func (r refusal) check(t *testing.T, dryRun []string) {
	storage := newStorage(t, impatient)
	before := r.arrange(t, storage)
	_, err := ask(by(t, "jane"), storage, "syncpipelines/sync", "knowledge",
		sending(cmp.Or(r.scope, configbutler.PipelineScopeAll)), dryRun...)
	if !r.is(err) || !strings.Contains(err.Error(), r.says) {
		t.Errorf("%v, want %q", err, r.says)
	}
	if after := storedPipeline(t, storage); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the pipeline has changed: %+v", after)
	}
}

func (r refusal) arrange(t *testing.T, storage *registry.Storage) *configbutler.SyncPipeline {
	t.Helper()
	newPipeline(t, storage, func(p *configbutler.SyncPipeline) {
		if r.prepare != nil {
			r.prepare(p)
		}
	})
	if r.policy != nil {
		create(t, storage, "syncpolicies", &configbutler.SyncPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: *r.policy})
	}
	for range r.waiting {
		if _, err := ask(by(t, "joe"), storage, "syncpipelines/sync", "knowledge", sending(configbutler.PipelineScopeAll)); err != nil {
			t.Fatal(err)
		}
	}
	if r.deleted {
		if _, _, err := storage.Endpoints["syncpipelines"].(rest.GracefulDeleter).Delete(
			inCluster(t), "knowledge", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return storedPipeline(t, storage)
}

func TestPipelineSyncIsJudgedFirst(t *testing.T) {
	storage := newStorage(t)
	stored := newPipeline(t, storage, func(*configbutler.SyncPipeline) {})
	served := storage.Endpoints["syncpipelines/sync"].(rest.NamedCreater)
	forbid := func(context.Context, runtime.Object) error {
		return apierrors.NewForbidden(configbutler.Resource("syncpipelines"), "knowledge", nil)
	}
	elsewhere := sending(configbutler.PipelineScopeAll)
	elsewhere.Name = "other"
	for what, tt := range map[string]struct {
		user    string
		name    string
		request runtime.Object
		admit   rest.ValidateObjectFunc
		is      func(error) bool
	}{
		"another object":       {"jane", "knowledge", elsewhere, nil, apierrors.IsInvalid},
		"nothing":              {"jane", "none", sending(configbutler.PipelineScopeAll), nil, apierrors.IsNotFound},
		"what is not admitted": {"jane", "knowledge", sending(configbutler.PipelineScopeAll), forbid, apierrors.IsForbidden},
		"an anonymous user":    {user.Anonymous, "knowledge", sending(configbutler.PipelineScopeAll), nil, apierrors.IsUnauthorized},
		"another kind":         {"jane", "knowledge", &configbutler.MirrorSync{}, nil, apierrors.IsBadRequest},
	} {
		if _, err := served.Create(by(t, tt.user), tt.name, tt.request, tt.admit, &metav1.CreateOptions{}); !tt.is(err) {
			t.Errorf("for %s: %v", what, err)
		}
	}
	answer, err := ask(by(t, "jane"), storage, "syncpipelines/sync", "knowledge", sending(configbutler.PipelineScopeAll), metav1.DryRunAll)
	if err != nil {
		t.Fatal(err)
	}
	want := "Would send CustomResourceDefinitions and objects that some sink does not know as they are (dry run)"
	if answer.Status.Message != want || answer.Status.ID != "" {
		t.Errorf("a dry run: %+v", answer.Status)
	}
	if after := storedPipeline(t, storage); after.ResourceVersion != stored.ResourceVersion {
		t.Errorf("the pipeline has changed: %+v", after)
	}
}

// TestWhoAnswersForAPipeline checks that the user who had a pipeline send more is responsible for it, and cannot be
// replaced.
func TestWhoAnswersForAPipeline(t *testing.T) {
	storage := newStorage(t)
	newPipeline(t, storage, func(p *configbutler.SyncPipeline) { p.Status.EditedBy = &configbutler.AutomatedBy{Username: "admin"} })
	for _, step := range []struct {
		name, user string
		do         func(*configbutler.SyncPipeline)
		want       string
	}{
		{"it is created", "joe", func(*configbutler.SyncPipeline) {}, "eve"},
		{"it sends less often", "joe", func(p *configbutler.SyncPipeline) { p.Spec.Batch.MaxItems = ptr.To(int32(10)) }, "eve"},
		{"it stops", "joe", func(p *configbutler.SyncPipeline) { p.Spec.Suspend = true }, "eve"},
		{"it is resumed", "jane", func(p *configbutler.SyncPipeline) { p.Spec.Suspend = false }, "jane"},
		{"it sends to another URL", "joe", func(p *configbutler.SyncPipeline) { p.Spec.Sinks[0].HTTP.URL = "https://other.example.com" }, "joe"},
		{"a sink is removed", "jane", func(p *configbutler.SyncPipeline) { p.Spec.Sinks = p.Spec.Sinks[:1] }, "joe"},
		{"an anonymous user lets it send more", user.Anonymous, func(p *configbutler.SyncPipeline) { p.Spec.Instances.Exclude = []string{} }, ""},
		{"with a forged status", "jane", func(p *configbutler.SyncPipeline) {
			p.Spec.Sinks[0].HTTP.URL = "https://third.example.com"
			p.Status.EditedBy = &configbutler.AutomatedBy{Username: "admin"}
		}, "jane"},
	} {
		if err := editPipeline(by(t, step.user), storage, "syncpipelines", step.do); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		got := ""
		if editor := storedPipeline(t, storage).Status.EditedBy; editor != nil {
			got = editor.Username
		}
		if got != step.want {
			t.Errorf("%s: %q answers for it, want %q", step.name, got, step.want)
		}
	}
	err := editPipeline(in(t), storage, "syncpipelines/status", func(p *configbutler.SyncPipeline) { p.Status.EditedBy.Username = "admin" })
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "status.editedBy") {
		t.Errorf("forging the editor: %v", err)
	}
}
