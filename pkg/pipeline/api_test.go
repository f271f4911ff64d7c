// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/install"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/fake"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

var (
	pipelinesResource = v1alpha1.SchemeGroupVersion.WithResource("syncpipelines")
	policiesResource  = v1alpha1.SchemeGroupVersion.WithResource("syncpolicies")
)

var internal = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}()

// api behaves like the API on writes: it sets defaults, increments resourceVersions, rejects conflicts, and validates.
type api struct {
	testing.TB
	client *fake.Clientset
	clock  *clocktesting.FakeClock
	// mu is held during writes.
	mu      sync.Mutex
	version int
	// writes has the times of status writes.
	writes []time.Time
	// conflicts is the number of status writes to reject.
	conflicts int
}

func newAPI(t testing.TB, clock *clocktesting.FakeClock) *api {
	a := &api{TB: t, client: fake.NewSimpleClientset(), clock: clock}
	a.client.PrependReactor("update", "syncpipelines", a.updateStatus)
	return a
}

// create creates a pipeline.
func (a *api) create(p *v1alpha1.SyncPipeline) {
	a.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	p = p.DeepCopy()
	v1alpha1.SetObjectDefaults_SyncPipeline(p)
	a.version++
	p.UID = types.UID("uid-" + p.Name + "-" + strconv.Itoa(a.version))
	p.ResourceVersion, p.Generation, p.CreationTimestamp = strconv.Itoa(a.version), 1, metav1.NewTime(a.clock.Now())
	if errs := validation.ValidateSyncPipeline(inside(p)); len(errs) > 0 {
		a.Fatal(errs)
	}
	if err := a.client.Tracker().Create(pipelinesResource, p, ""); err != nil {
		a.Fatal(err)
	}
}

// edit changes the spec or the editor of a pipeline, as users do.
func (a *api) edit(name string, change func(*v1alpha1.SyncPipeline)) {
	a.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	p, err := a.get(name)
	if err != nil {
		a.Fatal(err)
	}
	change(p)
	v1alpha1.SetObjectDefaults_SyncPipeline(p)
	p.Generation++
	a.put(p)
}

// ask adds a request to the status.
func (a *api) ask(name, id string, scope v1alpha1.PipelineScope, full bool) {
	a.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	p, err := a.get(name)
	if err != nil {
		a.Fatal(err)
	}
	p.Status.PendingRequests = append(p.Status.PendingRequests, v1alpha1.PendingPipelineRequest{
		ID: id, Actor: "jane", Time: metav1.NewTime(a.clock.Now()), Scope: scope, Full: full,
	})
	a.put(p)
}

// put stores a pipeline with the next resourceVersion. The caller holds mu.
func (a *api) put(p *v1alpha1.SyncPipeline) {
	a.version++
	p.ResourceVersion = strconv.Itoa(a.version)
	if err := a.client.Tracker().Update(pipelinesResource, p, ""); err != nil {
		a.Error(err)
	}
}

func (a *api) get(name string) (*v1alpha1.SyncPipeline, error) {
	found, err := a.client.Tracker().Get(pipelinesResource, "", name)
	if err != nil {
		return nil, err
	}
	return found.(*v1alpha1.SyncPipeline).DeepCopy(), nil
}

// pipeline returns the current object.
func (a *api) pipeline(name string) *v1alpha1.SyncPipeline {
	a.Helper()
	p, err := a.get(name)
	if err != nil {
		a.Fatal(err)
	}
	return p
}

func (a *api) remove(name string) {
	a.Helper()
	if err := a.client.Tracker().Delete(pipelinesResource, "", name); err != nil {
		a.Fatal(err)
	}
}

// switchOff sets whether the SyncPolicy suspends all pipelines.
func (a *api) switchOff(off bool) {
	a.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	policy := &v1alpha1.SyncPolicy{ObjectMeta: metav1.ObjectMeta{
		Name: v1alpha1.SyncPolicyName, UID: "policy", Generation: int64(a.version), ResourceVersion: strconv.Itoa(a.version),
	}}
	policy.Spec.Suspend.Pipelines = off
	err := a.client.Tracker().Update(policiesResource, policy, "")
	if apierrors.IsNotFound(err) {
		err = a.client.Tracker().Create(policiesResource, policy, "")
	}
	if err != nil {
		a.Fatal(err)
	}
}

// updateStatus handles the controller's writes.
func (a *api) updateStatus(action clienttesting.Action) (bool, runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	given := action.(clienttesting.UpdateAction).GetObject().(*v1alpha1.SyncPipeline)
	stored, err := a.get(given.Name)
	if err != nil {
		return true, nil, err
	}
	if given.ResourceVersion != stored.ResourceVersion || a.conflicts > 0 {
		a.conflicts = max(0, a.conflicts-1)
		return true, nil, apierrors.NewConflict(v1alpha1.Resource("syncpipelines"), given.Name, errors.New("it has been changed"))
	}
	next := stored.DeepCopy()
	next.Status = *given.Status.DeepCopy()
	after, before := inside(next), inside(stored)
	errs := append(validation.ValidateSyncPipelineStatusUpdate(after, before), validation.ValidateSyncPipelineStatusRequest(after, before)...)
	if err := errs.ToAggregate(); err != nil || action.GetSubresource() != "status" {
		a.Errorf("the API refuses what is written of %s (%q): %v", given.Name, action.GetSubresource(), err)
		return true, nil, err
	}
	a.put(next)
	a.writes = append(a.writes, a.clock.Now())
	return true, next, nil
}

// written returns the times of status writes.
func (a *api) written() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]time.Time(nil), a.writes...)
}

// inside converts a pipeline to the internal version.
func inside(p *v1alpha1.SyncPipeline) *configbutler.SyncPipeline {
	converted, err := internal.ConvertToVersion(p.DeepCopy(), configbutler.SchemeGroupVersion)
	if err != nil {
		panic(err)
	}
	return converted.(*configbutler.SyncPipeline)
}
