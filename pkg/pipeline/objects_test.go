// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/install"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

var internal = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}()

// create creates a pipeline.
func (s *fixture) create(p *v1alpha1.SyncPipeline) {
	s.Helper()
	p = p.DeepCopy()
	v1alpha1.SetObjectDefaults_SyncPipeline(p)
	p.Generation = 1
	if errs := validation.ValidateSyncPipeline(inside(p)); len(errs) > 0 {
		s.Fatal(errs)
	}
	s.api.Put(p)
}

// edit changes the spec or the editor of a pipeline, as users do.
func (s *fixture) edit(name string, change func(*v1alpha1.SyncPipeline)) {
	s.Helper()
	fakeapi.Change(s.api, "", name, func(p *v1alpha1.SyncPipeline) {
		change(p)
		v1alpha1.SetObjectDefaults_SyncPipeline(p)
		p.Generation++
	})
}

// ask adds a request to the status.
func (s *fixture) ask(name, id string, scope v1alpha1.PipelineScope, full bool) {
	s.Helper()
	fakeapi.Change(s.api, "", name, func(p *v1alpha1.SyncPipeline) {
		p.Status.PendingRequests = append(p.Status.PendingRequests, v1alpha1.PendingPipelineRequest{
			ID: id, Actor: "jane", Time: metav1.NewTime(s.clock.Now()), Scope: scope, Full: full,
		})
	})
}

// pipeline returns the current object.
func (s *fixture) pipeline(name string) *v1alpha1.SyncPipeline {
	s.Helper()
	return fakeapi.Get[*v1alpha1.SyncPipeline](s.api, "", name)
}

func (s *fixture) remove(name string) {
	s.Helper()
	fakeapi.Delete[*v1alpha1.SyncPipeline](s.api, "", name)
}

// switchOff sets whether the SyncPolicy suspends all pipelines.
func (s *fixture) switchOff(off bool) {
	s.Helper()
	s.policyGeneration++
	policy := &v1alpha1.SyncPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SyncPolicyName, UID: "policy", Generation: s.policyGeneration}}
	policy.Spec.Suspend.Pipelines = off
	s.api.Put(policy)
}

// rejectStatus rejects status writes while conflicts are to be caused, and records the times of others.
func (s *fixture) rejectStatus(object runtime.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conflicts > 0 {
		s.conflicts--
		return apierrors.NewConflict(v1alpha1.Resource("syncpipelines"), object.(metav1.Object).GetName(), errors.New("object was changed"))
	}
	s.statusWrites = append(s.statusWrites, s.clock.Now())
	return nil
}

// written returns the times of status writes.
func (s *fixture) written() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.statusWrites)
}

// rejectNext rejects a number of status writes with conflicts.
func (s *fixture) rejectNext(conflicts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conflicts = conflicts
}

// inside converts a pipeline to the internal version.
func inside(p *v1alpha1.SyncPipeline) *configbutler.SyncPipeline {
	converted, err := internal.ConvertToVersion(p.DeepCopy(), configbutler.SchemeGroupVersion)
	if err != nil {
		panic(err)
	}
	return converted.(*configbutler.SyncPipeline)
}
