// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/install"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/fake"
	"github.com/configbutler/slipstream/pkg/registry/validation"
	syncstatussummary "github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// api does what the API does with what is written: it counts versions, refuses what is of an earlier one, and validates.
type api struct {
	testing.TB
	client *fake.Clientset
	clock  *clocktesting.FakeClock
	life   *life
	// writing is held by who writes.
	writing sync.Mutex
	version int
}

var internal = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}()

func newAPI(t testing.TB, clock *clocktesting.FakeClock) *api {
	// The API's schemas, which NewClientset has for server-side apply, lack the fields of raw manifests.
	a := &api{TB: t, client: fake.NewSimpleClientset(), clock: clock, life: &life{end: func() {}}}
	a.client.PrependReactor("update", "environments", a.update)
	a.client.PrependReactor("delete", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := a.life.write()
		if err != nil || action.GetResource().Resource != "environments" {
			return err != nil, nil, err
		}
		return true, nil, a.delete(action.(clienttesting.DeleteAction).GetName())
	})
	return a
}

// keep stores an object as it is, over what there is of its name.
func (a *api) keep(resource string, object runtime.Object) {
	a.Helper()
	a.writing.Lock()
	defer a.writing.Unlock()
	if err := a.put(resource, object); err != nil {
		a.Fatal(err)
	}
}

func (a *api) put(resource string, object runtime.Object) error {
	object = object.DeepCopyObject()
	about, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	a.version++
	about.SetResourceVersion(strconv.Itoa(a.version))
	if about.GetUID() == "" {
		about.SetUID(types.UID("uid of " + about.GetName()))
	}
	gvr := v1alpha1.SchemeGroupVersion.WithResource(resource)
	_, err = a.client.Tracker().Get(gvr, about.GetNamespace(), about.GetName())
	if apierrors.IsNotFound(err) {
		about.SetCreationTimestamp(metav1.NewTime(a.clock.Now()))
		return a.client.Tracker().Create(gvr, object, about.GetNamespace())
	}
	return a.client.Tracker().Update(gvr, object, about.GetNamespace())
}

// Write is how records are written.
func (a *api) Write(_ context.Context, record runtime.Object) error {
	if err := a.life.write(); err != nil {
		return err
	}
	kind := record.GetObjectKind().GroupVersionKind().Kind
	resource := "environmentdependencies"
	if _, is := record.(*v1alpha1.SyncStatus); is {
		resource = "syncstatuses"
	}
	about, err := meta.Accessor(record)
	if err != nil {
		return err
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	gvr := v1alpha1.SchemeGroupVersion.WithResource(resource)
	stored, err := a.client.Tracker().Get(gvr, about.GetNamespace(), about.GetName())
	switch {
	case apierrors.IsNotFound(err) && about.GetResourceVersion() != "":
		return apierrors.NewConflict(gvr.GroupResource(), about.GetName(), errors.New("it is gone"))
	case apierrors.IsNotFound(err):
		stored = nil
	case err != nil:
		return err
	case about.GetResourceVersion() != "" && about.GetResourceVersion() != stored.(metav1.Object).GetResourceVersion():
		return apierrors.NewConflict(gvr.GroupResource(), about.GetName(), errors.New("it has been changed"))
	}
	if after, is := record.(*v1alpha1.SyncStatus); is {
		if err := checkRecord(after, stored); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	if stored != nil {
		record = record.DeepCopyObject()
		record.(metav1.Object).SetUID(stored.(metav1.Object).GetUID())
		record.(metav1.Object).SetCreationTimestamp(stored.(metav1.Object).GetCreationTimestamp())
	}
	return a.put(resource, record)
}

func checkRecord(record *v1alpha1.SyncStatus, stored runtime.Object) error {
	after := inside[*configbutler.SyncStatus](record)
	if stored == nil {
		return validation.ValidateSyncStatus(after).ToAggregate()
	}
	before := inside[*configbutler.SyncStatus](stored)
	after.UID, after.CreationTimestamp, after.ResourceVersion = before.UID, before.CreationTimestamp, before.ResourceVersion
	return validation.ValidateSyncStatusUpdate(after, before).ToAggregate()
}

// inside is an object as the API has it inside.
func inside[O runtime.Object](object runtime.Object) O {
	converted, err := internal.ConvertToVersion(object.DeepCopyObject(), configbutler.SchemeGroupVersion)
	if err != nil {
		panic(err)
	}
	return converted.(O)
}

// update is how the controller writes environments.
func (a *api) update(action clienttesting.Action) (bool, runtime.Object, error) {
	if err := a.life.write(); err != nil {
		return true, nil, err
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	given := action.(clienttesting.UpdateAction).GetObject().(*v1alpha1.Environment).DeepCopy()
	stored, err := a.get(given.Name)
	if err != nil {
		return true, nil, err
	}
	if given.ResourceVersion != stored.ResourceVersion {
		return true, nil, apierrors.NewConflict(v1alpha1.Resource("environments"), given.Name, errors.New("it has been changed"))
	}
	next := stored.DeepCopy()
	if action.GetSubresource() == "status" {
		next.Status = given.Status
	} else {
		next.Spec, next.Finalizers = given.Spec, given.Finalizers
	}
	after, before := inside[*configbutler.Environment](next), inside[*configbutler.Environment](stored)
	errs := append(validation.ValidateEnvironmentStatusUpdate(after, before), validation.ValidateEnvironmentStatusRequest(after, before)...)
	if err := errs.ToAggregate(); err != nil {
		a.Errorf("the API refuses what is written of %s: %v", given.Name, err)
		return true, nil, err
	}
	if next.DeletionTimestamp != nil && len(next.Finalizers) == 0 {
		return true, next, a.client.Tracker().Delete(action.GetResource(), next.Namespace, next.Name)
	}
	next.Status.State = syncstatussummary.Environment(next)
	err = a.put("environments", next)
	if err != nil {
		return true, nil, err
	}
	written, err := a.get(given.Name)
	return true, written, err
}

// delete is how environments are deleted.
func (a *api) delete(name string) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	e, err := a.get(name)
	if err != nil {
		return err
	}
	if len(e.Finalizers) == 0 {
		return a.client.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("environments"), e.Namespace, e.Name)
	}
	if e.DeletionTimestamp == nil {
		now := metav1.NewTime(a.clock.Now())
		e.DeletionTimestamp = &now
		return a.put("environments", e)
	}
	return nil
}

func (a *api) get(name string) (*v1alpha1.Environment, error) {
	object, err := a.client.Tracker().Get(v1alpha1.SchemeGroupVersion.WithResource("environments"), environmenttest.Teams, name)
	if err != nil {
		return nil, err
	}
	return object.(*v1alpha1.Environment).DeepCopy(), nil
}

// addEnvironment has an environment made by its user.
func (a *api) addEnvironment(e *v1alpha1.Environment) {
	a.Helper()
	e.Generation = 1
	v1alpha1.SetObjectDefaults_Environment(e)
	e.Status.PendingEdits = []v1alpha1.EnvironmentEdit{{Generation: 1, Actor: "eve", Time: metav1.NewTime(a.clock.Now())}}
	if e.Spec.AutoSync {
		e.Status.AutomatedBy = &v1alpha1.AutomatedBy{Username: "eve", Time: metav1.NewTime(a.clock.Now())}
	}
	a.keep("environments", e)
}

// environment returns one as it is now.
func (a *api) environment(name string) *v1alpha1.Environment {
	a.Helper()
	e, err := a.get(name)
	if err != nil {
		a.Fatal(err)
	}
	return e
}

// change changes the environment alice.
func (a *api) change(change func(*v1alpha1.Environment)) {
	a.Helper()
	a.writing.Lock()
	defer a.writing.Unlock()
	e, err := a.get("alice")
	if err == nil {
		change(e)
		err = a.put("environments", e)
	}
	if err != nil {
		a.Fatal(err)
	}
}

// edit changes the spec of alice as a user does.
func (a *api) edit(actor string, change func(*v1alpha1.EnvironmentSpec), fields ...string) {
	a.Helper()
	a.change(func(e *v1alpha1.Environment) {
		change(&e.Spec)
		e.Generation++
		e.Status.PendingEdits = append(e.Status.PendingEdits, v1alpha1.EnvironmentEdit{
			Generation: e.Generation, Actor: actor, Time: metav1.NewTime(a.clock.Now()), Fields: fields,
		})
	})
}

// ask requests a sync of alice.
func (a *api) ask(id, actor string, spec v1alpha1.SyncRequestSpec) {
	a.Helper()
	spec.Action = cmp.Or(spec.Action, v1alpha1.SyncActionAll)
	a.request(v1alpha1.PendingEnvironmentRequest{ID: id, Actor: actor, Type: v1alpha1.EnvironmentRequestSync, Sync: &spec})
}

func (a *api) request(request v1alpha1.PendingEnvironmentRequest) {
	a.Helper()
	request.Time = metav1.NewTime(a.clock.Now())
	a.change(func(e *v1alpha1.Environment) { e.Status.PendingRequests = append(e.Status.PendingRequests, request) })
}

// syncStatuses are the records, the oldest first.
func (a *api) syncStatuses() []*v1alpha1.SyncStatus {
	a.Helper()
	list, err := a.client.Tracker().List(v1alpha1.SchemeGroupVersion.WithResource("syncstatuses"),
		v1alpha1.SchemeGroupVersion.WithKind("SyncStatus"), environmenttest.Teams)
	if err != nil {
		a.Fatal(err)
	}
	var records []*v1alpha1.SyncStatus
	for _, record := range list.(*v1alpha1.SyncStatusList).Items {
		records = append(records, record.DeepCopy())
	}
	slices.SortFunc(records, compareAges)
	return records
}

// told are the records, each as a line.
func (a *api) told() []string {
	a.Helper()
	var lines []string
	for _, record := range a.syncStatuses() {
		lines = append(lines, lineOf(record))
	}
	return lines
}

func lineOf(record *v1alpha1.SyncStatus) string {
	status := &record.Status
	words := []string{string(record.Spec.Type), record.Spec.Batch, string(status.State)}
	if status.Preview {
		words = append(words, "preview")
	}
	if status.Actor != "" {
		words = append(words, "by "+status.Actor)
	}
	if status.Revision > 0 {
		words = append(words, fmt.Sprintf("r%d", status.Revision))
	}
	return strings.Join(words, " ")
}

// tells expects the records.
func (s *fixture) tells(want ...string) {
	s.Helper()
	s.eventually("records", func() error {
		if got := s.told(); !slices.Equal(got, want) {
			return fmt.Errorf("\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
}
