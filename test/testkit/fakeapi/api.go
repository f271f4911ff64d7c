// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakeapi provides the configbutler.ai API to tests of controllers, without a server.
package fakeapi

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/fake"
	versionedscheme "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/scheme"
	"github.com/configbutler/slipstream/test/testkit"
)

// API is a fake of the API with the behaviour that controllers depend on: writes through Client and Write increase resourceVersions, fail
// with a Conflict for an earlier one, change either the status or the rest, and are validated as on the server; an object with finalizers
// is deleted with its last one. Each is a write of Process. What the test itself writes, by Put and Change, is stored as it is.
type API struct {
	Client *fake.Clientset
	// Process is the process whose controllers write. It never dies unless the test starts it so.
	Process *testkit.Process

	t     testing.TB
	clock clock.PassiveClock
	// before, reject and after are functions of the test, nil if it has set none.
	before        atomic.Pointer[func(object runtime.Object)]
	reject, after atomic.Pointer[func(object runtime.Object) error]
	// mu is held during each write.
	mu      sync.Mutex
	version int
}

// New returns an API with objects.
func New(t testing.TB, passiveClock clock.PassiveClock, objects ...runtime.Object) *API {
	t.Helper()
	// The objects of NewClientset go through schemas for server-side apply, which lack the fields of raw manifests.
	a := &API{t: t, Client: fake.NewSimpleClientset(), Process: &testkit.Process{}, clock: passiveClock}
	a.Client.PrependReactor("update", "*", a.update)
	a.Client.PrependReactor("delete", "*", a.delete)
	a.Put(objects...)
	return a
}

// BeforeWrite sets what is called before each write of the process with the object to be written. It may use the API.
func (a *API) BeforeWrite(call func(object runtime.Object)) { a.before.Store(&call) }

// Reject sets what returns the error of a write of the process, nil if the API accepts it.
func (a *API) Reject(call func(object runtime.Object) error) { a.reject.Store(&call) }

// AfterWrite sets what is called after each stored write of the process. Its error is the response, as if that of the API were lost.
func (a *API) AfterWrite(call func(object runtime.Object) error) { a.after.Store(&call) }

// Put stores objects as the test made them, over existing ones of their names.
func (a *API) Put(objects ...runtime.Object) {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, object := range objects {
		if _, err := a.store(object); err != nil {
			a.t.Fatal(err)
		}
	}
}

// PutTogether is Put for objects that the server stores in one transaction: all have the same resourceVersion.
func (a *API) PutTogether(objects ...runtime.Object) {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	version := a.version
	for _, object := range objects {
		a.version = version
		if _, err := a.store(object); err != nil {
			a.t.Fatal(err)
		}
	}
}

// Get returns a copy of the object of O's kind, the zero O if it does not exist.
func Get[O runtime.Object](a *API, namespace, name string) (object O) {
	a.t.Helper()
	stored, err := a.Client.Tracker().Get(resourceOf[O](), namespace, name)
	if apierrors.IsNotFound(err) {
		return object
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return stored.DeepCopyObject().(O)
}

// List returns copies of the objects of O's kind in a namespace.
func List[O runtime.Object](a *API, namespace string) (objects []O) {
	a.t.Helper()
	list, err := a.Client.Tracker().List(resourceOf[O](), kindOf(newObject[O]()), namespace)
	if err == nil {
		err = meta.EachListItem(list, func(object runtime.Object) error {
			objects = append(objects, object.DeepCopyObject().(O))
			return nil
		})
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return objects
}

// Change changes an object, as another client of the API does.
func Change[O runtime.Object](a *API, namespace, name string, change func(O)) {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	stored, err := a.Client.Tracker().Get(resourceOf[O](), namespace, name)
	if err != nil {
		a.t.Fatal(err)
	}
	object := stored.DeepCopyObject().(O)
	change(object)
	if _, err := a.store(object); err != nil {
		a.t.Fatal(err)
	}
}

// Delete deletes an object, as another client of the API does.
func Delete[O runtime.Object](a *API, namespace, name string) {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.remove(resourceOf[O](), namespace, name); err != nil {
		a.t.Fatal(err)
	}
}

// Write creates or replaces a record, as registry.Records does.
func (a *API) Write(_ context.Context, record runtime.Object) (written runtime.Object, err error) {
	if before := a.before.Load(); before != nil {
		(*before)(record)
	}
	err = a.Process.Write(func() (err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		written, err = a.writeRecord(record)
		return err
	})
	return written, err
}

// writeRecord creates or replaces a record, and returns the stored one. The caller holds mu.
func (a *API) writeRecord(record runtime.Object) (runtime.Object, error) {
	given, err := meta.Accessor(record)
	if err != nil {
		return nil, err
	}
	resource := resourceFor(kindOf(record))
	stored, err := a.Client.Tracker().Get(resource, given.GetNamespace(), given.GetName())
	if apierrors.IsNotFound(err) && given.GetResourceVersion() == "" {
		return a.accept(validateCreate, record, nil)
	}
	if apierrors.IsNotFound(err) {
		return nil, conflict(resource, given.GetName(), "it was deleted")
	}
	if err != nil {
		return nil, err
	}
	before := stored.(metav1.Object)
	if version := given.GetResourceVersion(); version != "" && version != before.GetResourceVersion() {
		return nil, conflict(resource, given.GetName(), "it was changed")
	}
	record = record.DeepCopyObject()
	after := record.(metav1.Object)
	after.SetUID(before.GetUID())
	after.SetResourceVersion(before.GetResourceVersion())
	after.SetCreationTimestamp(before.GetCreationTimestamp())
	return a.accept(validateUpdate, record, stored)
}

// update handles the updates of Client.
func (a *API) update(action clienttesting.Action) (_ bool, updated runtime.Object, err error) {
	given := action.(clienttesting.UpdateAction).GetObject()
	if before := a.before.Load(); before != nil {
		(*before)(given)
	}
	err = a.Process.Write(func() (err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		updated, err = a.replace(action, given)
		return err
	})
	return true, updated, err
}

// replace replaces the status or the rest of a stored object. The caller holds mu.
func (a *API) replace(action clienttesting.Action, given runtime.Object) (runtime.Object, error) {
	about := given.(metav1.Object)
	stored, err := a.Client.Tracker().Get(action.GetResource(), about.GetNamespace(), about.GetName())
	if err != nil {
		return nil, err
	}
	if about.GetResourceVersion() != stored.(metav1.Object).GetResourceVersion() {
		return nil, conflict(action.GetResource(), about.GetName(), "it was changed")
	}
	next, from, validate := given.DeepCopyObject(), stored, validateUpdate
	if action.GetSubresource() == "status" {
		next, from, validate = stored.DeepCopyObject(), given, validateStatus
	}
	reflect.ValueOf(next).Elem().FieldByName("Status").Set(reflect.ValueOf(from.DeepCopyObject()).Elem().FieldByName("Status"))
	if after := next.(metav1.Object); after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0 {
		return next, a.Client.Tracker().Delete(action.GetResource(), after.GetNamespace(), after.GetName())
	}
	return a.accept(validate, next, stored)
}

// delete handles the deletions of Client.
func (a *API) delete(action clienttesting.Action) (bool, runtime.Object, error) {
	return true, nil, a.Process.Write(func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.remove(action.GetResource(), action.GetNamespace(), action.(clienttesting.DeleteAction).GetName())
	})
}

// remove deletes an object, or only sets its deletionTimestamp if it has finalizers. The caller holds mu.
func (a *API) remove(resource schema.GroupVersionResource, namespace, name string) error {
	stored, err := a.Client.Tracker().Get(resource, namespace, name)
	if err != nil {
		return err
	}
	object := stored.DeepCopyObject()
	about := object.(metav1.Object)
	if len(about.GetFinalizers()) == 0 {
		return a.Client.Tracker().Delete(resource, namespace, name)
	}
	if about.GetDeletionTimestamp() != nil {
		return nil
	}
	now := metav1.NewTime(a.clock.Now())
	about.SetDeletionTimestamp(&now)
	_, err = a.store(object)
	return err
}

// accept validates and stores an object of the process, and returns the stored one. A controller has no reason to write what is invalid, so
// that fails the test. The caller holds mu.
func (a *API) accept(validate validation, object, stored runtime.Object) (runtime.Object, error) {
	if reject := a.reject.Load(); reject != nil {
		if err := (*reject)(object); err != nil {
			return nil, err
		}
	}
	if err := validate(object, stored); err != nil {
		a.t.Errorf("the API rejects what is written to %s: %v", nameOf(object), err)
		return nil, apierrors.NewBadRequest(err.Error())
	}
	written, err := a.store(object)
	if err != nil {
		return nil, err
	}
	if after := a.after.Load(); after != nil {
		if err := (*after)(object); err != nil {
			return nil, err
		}
	}
	return written, nil
}

// store stores an object with the next resourceVersion and what else the server sets. The caller holds mu.
func (a *API) store(object runtime.Object) (runtime.Object, error) {
	object = object.DeepCopyObject()
	about := object.(metav1.Object)
	a.version++
	about.SetResourceVersion(strconv.Itoa(a.version))
	if about.GetUID() == "" {
		about.SetUID(types.UID(fmt.Sprintf("uid-%d-of-%s", a.version, about.GetName())))
	}
	setState(object)
	resource := resourceFor(kindOf(object))
	_, err := a.Client.Tracker().Get(resource, about.GetNamespace(), about.GetName())
	if !apierrors.IsNotFound(err) {
		return object, a.Client.Tracker().Update(resource, object, about.GetNamespace())
	}
	if created := about.GetCreationTimestamp(); created.IsZero() {
		about.SetCreationTimestamp(metav1.NewTime(a.clock.Now()))
	}
	return object, a.Client.Tracker().Create(resource, object, about.GetNamespace())
}

func conflict(resource schema.GroupVersionResource, name, why string) error {
	return apierrors.NewConflict(resource.GroupResource(), name, errors.New(why))
}

func newObject[O runtime.Object]() O {
	return reflect.New(reflect.TypeFor[O]().Elem()).Interface().(O)
}

func resourceOf[O runtime.Object]() schema.GroupVersionResource {
	return resourceFor(kindOf(newObject[O]()))
}

// kindOf returns the kind of an object of the API. Others are mistakes of the test.
func kindOf(object runtime.Object) schema.GroupVersionKind {
	kinds, _, err := versionedscheme.Scheme.ObjectKinds(object)
	if err != nil {
		panic(err)
	}
	return kinds[0]
}

func resourceFor(kind schema.GroupVersionKind) schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural
}

func nameOf(object runtime.Object) string {
	about := object.(metav1.Object)
	return fmt.Sprintf("%s %s/%s", kindOf(object).Kind, about.GetNamespace(), about.GetName())
}
