// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/pkg/kube/apierror"
)

const (
	// pollInterval is the time between two looks at an object that is to become usable, or to go.
	pollInterval = 100 * time.Millisecond
	// usableTimeout is how long a new CustomResourceDefinition or Namespace may take to be usable.
	usableTimeout = time.Minute
	// goneTimeout is how long a deleted object may take to go, before it is created again.
	goneTimeout = 2 * time.Minute
	// quotaTimeout is how long a quota may count an object that was deleted.
	quotaTimeout = 10 * time.Second
	// maxRetries is how often a step is tried again because the status of the object has changed.
	maxRetries = 10
)

// Writer writes objects with the rights of its client.
type Writer struct {
	Client dynamic.Interface
	// Manager is the field manager.
	Manager string
	// Planner is the planner of the steps.
	Planner Planner
}

func (w Writer) of(o Object) dynamic.ResourceInterface {
	if o.Namespace == "" {
		return w.Client.Resource(o.Resource)
	}
	return w.Client.Resource(o.Resource).Namespace(o.Namespace)
}

// NotCreatedError is returned if an object was deleted, or perhaps was, and was not created again. It has no status of the API server,
// so that it is not taken for a refusal after which the object still exists.
type NotCreatedError struct {
	// Manifest is the object that was to be created.
	Manifest *unstructured.Unstructured
	// Reason says why.
	Reason string
}

// Error returns the reason.
func (e *NotCreatedError) Error() string { return "it is deleted, and not created: " + e.Reason }

// notCreated returns the error for a step whose object was deleted.
func notCreated(s *Step, err error) error {
	if isSecret(s) {
		err = apierror.RedactSecret(err)
	}
	return &NotCreatedError{Manifest: s.Write, Reason: err.Error()}
}

func isSecret(s *Step) bool { return s.Kind.GroupKind() == schema.GroupKind{Kind: "Secret"} }

// DryRun has the API server check a step, and sets its Result or its Refusals. A step that would change nothing becomes Keep. It fails
// if the API server says nothing about the step. A step that a webhook does not support in a dry run is not checked, and neither is one
// that has Refusals.
func (w Writer) DryRun(ctx context.Context, s *Step) error {
	result, err := w.attempt(ctx, s, []string{metav1.DryRunAll})
	switch {
	case len(s.Refusals) > 0:
		return nil
	case err == nil:
		s.Result = result
		if s.Verb == Update && w.isSame(result, s.Live) {
			s.Verb, s.Write = Keep, nil
		}
		return nil
	case s.Verb == Create && apierrors.IsNotFound(err):
		return nil // Its namespace or definition does not exist yet.
	case apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run"):
		return nil // A webhook has side effects.
	}
	if s.Refusals = refusalsOf(s.Kind.GroupKind(), err); len(s.Refusals) == 0 {
		return err
	}
	s.Replaceable = s.Verb == Update && apierrors.IsInvalid(err) && !ContainsOthers(s.Kind.GroupKind())
	s.Forbidden = apierrors.IsForbidden(err)
	return nil
}

// isSame reports whether an update has changed nothing but what the API server notes about the update.
func (w Writer) isSame(a, b *unstructured.Unstructured) bool {
	stripped := func(object *unstructured.Unstructured) map[string]any {
		object = w.Planner.withoutReasons(object).DeepCopy()
		object.SetManagedFields(nil)
		object.SetResourceVersion("")
		object.SetGeneration(0)
		return object.Object
	}
	return reflect.DeepEqual(stripped(a), stripped(b))
}

// Apply executes a step, and returns the object as it is then, nil if it is deleted. It fails with a conflict if the content of the object
// has changed since it was read, and with a *NotCreatedError if it was deleted and then not created. After the creation of a CustomResourceDefinition it waits until its objects can be created.
func (w Writer) Apply(ctx context.Context, s *Step) (*unstructured.Unstructured, error) {
	written, err := w.attempt(ctx, s, nil)
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) && s.Verb == Update {
		return nil, apierrors.NewConflict(s.Resource.GroupResource(), s.Name, err)
	}
	var lost *NotCreatedError
	if err != nil && isSecret(s) && !errors.As(err, &lost) {
		return nil, apierror.RedactSecret(err)
	}
	if err == nil && s.Kind.GroupKind() == customResourceDefinition && s.Verb != Delete {
		return written, w.waitEstablished(ctx, s.Object)
	}
	return written, err
}

// attempt executes a step, and again if the API server notes another version of the object. Controllers write the status at any time:
// only another content is a conflict. In a dry run, which is before the preview, that is no conflict either, unless the content of the step
// was made from the object.
func (w Writer) attempt(ctx context.Context, s *Step, dryRun []string) (*unstructured.Unstructured, error) {
	for retries := maxRetries; len(s.Refusals) == 0; retries-- {
		result, err := w.execute(ctx, s, dryRun)
		if !apierrors.IsConflict(err) || s.Live == nil || retries == 0 {
			return result, err
		}
		isSame, refreshErr := w.refresh(ctx, s, dryRun != nil)
		if refreshErr != nil {
			return nil, refreshErr
		}
		if !isSame {
			return nil, err
		}
	}
	return nil, nil
}

// refresh reads the object of a step again, and plans the step for it unless its content has changed. If replan is set, it does so then,
// too.
func (w Writer) refresh(ctx context.Context, s *Step, replan bool) (planned bool, err error) {
	live, err := w.of(s.Object).Get(ctx, s.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		live, err = nil, nil
	}
	if err != nil {
		return false, err
	}
	isSame := live != nil && live.GetUID() == s.Live.GetUID() && (live.GetDeletionTimestamp() != nil) == (s.Live.GetDeletionTimestamp() != nil)
	if isSame {
		was, err := w.Planner.Content(s.Ignored.Without(s.Live))
		if err != nil {
			return false, err
		}
		is, err := w.Planner.Content(s.Ignored.Without(live))
		if err != nil {
			return false, err
		}
		isSame = reflect.DeepEqual(was.Object, is.Object)
	}
	if !isSame && (!replan || s.Edited) {
		return false, nil
	}
	s.Live = live
	return true, w.Planner.plan(s)
}

func (w Writer) execute(ctx context.Context, s *Step, dryRun []string) (*unstructured.Unstructured, error) {
	switch s.Verb {
	case Keep:
		return s.Live, nil
	case Create:
		return w.create(ctx, s, dryRun)
	case Update:
		return w.of(s.Object).Update(ctx, s.Write, metav1.UpdateOptions{
			FieldManager: w.Manager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun,
		})
	case Recreate:
		return w.recreate(ctx, s, dryRun)
	}
	return nil, w.delete(ctx, s, dryRun)
}

// recreate deletes and creates an object. If it ends after the deletion, it returns a *NotCreatedError.
func (w Writer) recreate(ctx context.Context, s *Step, dryRun []string) (*unstructured.Unstructured, error) {
	err := w.delete(ctx, s, dryRun)
	if dryRun != nil && err == nil {
		return w.tryCreate(ctx, s)
	}
	switch {
	case err == nil:
	case ctx.Err() != nil && dryRun == nil:
		return nil, notCreated(s, fmt.Errorf("ended while it was deleted: %w", err)) // The API server may have executed the request.
	default:
		return nil, err
	}
	if err := w.waitGone(ctx, s); err != nil {
		return nil, notCreated(s, err)
	}
	created, err := w.createAgain(ctx, s)
	if err != nil {
		return nil, notCreated(s, err)
	}
	return created, nil
}

// createAgain creates an object that was deleted just before: its quota is free in a moment.
func (w Writer) createAgain(ctx context.Context, s *Step) (created *unstructured.Unstructured, err error) {
	waited := wait.PollUntilContextTimeout(ctx, pollInterval, quotaTimeout, true, func(ctx context.Context) (bool, error) {
		created, err = w.create(ctx, s, nil)
		return !isOverQuota(err), nil
	})
	if err != nil {
		return nil, err
	}
	return created, waited
}

// isOverQuota reports whether a request was refused by a quota.
func isOverQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: ")
}

func createOptions(manager string, dryRun []string) metav1.CreateOptions {
	return metav1.CreateOptions{FieldManager: manager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun}
}

// create creates an object. Its type is perhaps served only in a moment, if its definition was created just before.
func (w Writer) create(ctx context.Context, s *Step, dryRun []string) (created *unstructured.Unstructured, err error) {
	if dryRun != nil {
		return w.of(s.Object).Create(ctx, s.Write, createOptions(w.Manager, dryRun))
	}
	waited := wait.PollUntilContextTimeout(ctx, pollInterval, usableTimeout, true, func(ctx context.Context) (bool, error) {
		created, err = w.of(s.Object).Create(ctx, s.Write, createOptions(w.Manager, nil))
		return !isNotServed(err), nil
	})
	if err != nil {
		return nil, err
	}
	if waited != nil {
		return nil, waited
	}
	return created, nil
}

// isNotServed reports whether a request has failed because the type is not served.
func isNotServed(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}

// tryCreate dry-runs the creation of an object that exists, with another name and without the node ports that the object has.
func (w Writer) tryCreate(ctx context.Context, s *Step) (*unstructured.Unstructured, error) {
	object := s.Write.DeepCopy()
	object.SetName("")
	object.SetGenerateName(s.Name + "-")
	dropsPorts := dropNodePorts(object)
	tried, err := w.of(s.Object).Create(ctx, object, createOptions(w.Manager, []string{metav1.DryRunAll}))
	if apierrors.IsInvalid(err) && namesOnly(err) || isOverQuota(err) {
		return s.Write, nil // Without the old object, it fits.
	}
	if err != nil {
		return nil, err
	}
	if dropsPorts {
		return s.Write, nil // The result has other ports.
	}
	tried.SetName(s.Name)
	tried.SetGenerateName("")
	return tried, nil
}

// dropNodePorts removes the node ports of a Service, and reports whether it had any.
func dropNodePorts(object *unstructured.Unstructured) (dropped bool) {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Service"}) {
		return false
	}
	spec, _ := object.Object["spec"].(map[string]any)
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if fields, ok := port.(map[string]any); ok && fields["nodePort"] != nil {
			delete(fields, "nodePort")
			dropped = true
		}
	}
	return dropped
}

// namesOnly reports whether an object is refused for its name.
func namesOnly(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if !strings.HasPrefix(cause.Field, "metadata.") {
			return false
		}
	}
	return true
}

// delete deletes the object that was read. If it does not exist any more, that is no error.
func (w Writer) delete(ctx context.Context, s *Step, dryRun []string) error {
	uid, version := s.Live.GetUID(), s.Live.GetResourceVersion()
	background := metav1.DeletePropagationBackground
	err := w.of(s.Object).Delete(ctx, s.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: &background, DryRun: dryRun,
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// waitGone waits until a deleted object does not exist any more.
func (w Writer) waitGone(ctx context.Context, s *Step) error {
	var finalizers []string
	err := wait.PollUntilContextTimeout(ctx, pollInterval, goneTimeout, true, func(ctx context.Context) (bool, error) {
		object, err := w.of(s.Object).Get(ctx, s.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		finalizers = object.GetFinalizers()
		return object.GetUID() != s.Live.GetUID(), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("it still exists after %s, with the finalizers %q", goneTimeout, finalizers)
	}
	return err
}

// waitEstablished waits until a CustomResourceDefinition is served.
func (w Writer) waitEstablished(ctx context.Context, o Object) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, usableTimeout, true, func(ctx context.Context) (bool, error) {
		definition, err := w.of(o).Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
		for _, condition := range conditions {
			if fields, ok := condition.(map[string]any); ok && fields["type"] == "Established" && fields["status"] == "True" {
				return true, nil
			}
		}
		return false, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("it is written, and not established after %s", usableTimeout)
	}
	return err
}

// refusalsOf returns why the API server does not accept an object, none if the error says nothing about the object.
func refusalsOf(kind schema.GroupKind, err error) []Refusal {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !isRefusal(err) {
		return nil
	}
	message := func(cause metav1.CauseType, text string) string {
		if kind == (schema.GroupKind{Kind: "Secret"}) {
			return apierror.SecretMessage(cause, text)
		}
		return text
	}
	var out []Refusal
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			out = append(out, Refusal{Field: cause.Field, Message: message(cause.Type, cause.Message)})
		}
	}
	if len(out) == 0 {
		out = []Refusal{{Message: message("", status.Status().Message)}}
	}
	return out
}

// isRefusal reports whether the API server has decided about an object.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}
