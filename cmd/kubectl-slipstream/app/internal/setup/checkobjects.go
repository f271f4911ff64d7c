// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// listPage is the number of objects in a response.
	listPage = 500
	// listLimit is the number of objects of a kind that are read.
	listLimit = 20 * listPage
	// problemLimit is the number of objects of a kind that get a line of their own.
	problemLimit = 10
)

// checkedKind is a kind whose objects are checked.
type checkedKind struct {
	resource, kind string
	// clusterScoped is whether the objects are in no namespace.
	clusterScoped bool
	// waits is whether objects are usually not ready until a user asks for something.
	waits bool
}

// checkedKinds are in the order in which they depend on each other.
func checkedKinds() []checkedKind {
	return []checkedKind{
		{resource: "gitrepoconfigs", kind: "GitRepoConfig"},
		{resource: "gitdestinations", kind: "GitDestination"},
		{resource: "watchrules", kind: "WatchRule"},
		{resource: "clusterwatchrules", kind: "ClusterWatchRule", clusterScoped: true},
		{resource: "appcatalogs", kind: "AppCatalog"},
		{resource: "environments", kind: "Environment", waits: true},
		{resource: "syncpipelines", kind: "SyncPipeline", clusterScoped: true},
		{resource: "notificationsinks", kind: "NotificationSink"},
	}
}

// checkObjects checks which objects are not ready: those of all namespaces, or those of one if the user may not list all.
func (c *check) checkObjects(ctx context.Context) bool {
	for _, kind := range checkedKinds() {
		if !c.checkKind(ctx, kind) {
			return false
		}
	}
	return true
}

// checkKind checks the objects of a kind. It reports whether the server answers.
func (c *check) checkKind(ctx context.Context, kind checkedKind) bool {
	about, where := kind.kind+"s", "all namespaces"
	objects, err := c.list(ctx, kind, metav1.NamespaceAll)
	if apierrors.IsForbidden(err) && !kind.clusterScoped {
		where = "namespace " + c.namespace
		objects, err = c.list(ctx, kind, c.namespace)
	}
	switch {
	case apierrors.IsForbidden(err) && kind.clusterScoped:
		return true // Few users need to see them.
	case apierrors.IsForbidden(err):
		c.warn(about, fmt.Sprintf("you may not list them in %s", where), "ask for the role slipstream-view in the namespace, or choose another with -n")
		return true
	case apierrors.IsServiceUnavailable(err):
		c.unavailable(about, err)
		return false
	case err != nil:
		c.fail(about, oneLine(err), "see whether kubectl get "+kind.resource+" works")
		return true
	}
	problems := 0
	for i := range objects {
		if c.checkReady(kind, &objects[i], problems < problemLimit) {
			continue
		}
		problems++
	}
	if problems > problemLimit {
		c.warn(about, fmt.Sprintf("%d more are not ready", problems-problemLimit), fmt.Sprintf("kubectl get %s -A", kind.resource))
	}
	if kind.clusterScoped {
		where = "the cluster"
	}
	if ready := len(objects) - problems; len(objects) > 0 && problems == 0 {
		c.ok(about, "%d ready in %s", ready, where)
	}
	return true
}

// list returns the objects of a kind, at most a number of them.
func (c *check) list(ctx context.Context, kind checkedKind, namespace string) (objects []unstructured.Unstructured, err error) {
	in := c.dynamic.Resource(v1alpha1.SchemeGroupVersion.WithResource(kind.resource)).Namespace(namespace)
	options := metav1.ListOptions{Limit: listPage}
	for {
		page, err := in.List(ctx, options)
		if err != nil {
			return nil, err
		}
		objects = append(objects, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" || len(objects) >= listLimit {
			return objects, nil
		}
	}
}

// checkReady reports whether an object is ready, and adds a line if it is not and lines are wanted.
func (c *check) checkReady(kind checkedKind, object *unstructured.Unstructured, wanted bool) bool {
	conditions := conditionsOf(object)
	if kind.resource == "gitdestinations" {
		c.noteAuthors(object, conditions)
	}
	ready := apimeta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if ready != nil && ready.Status == metav1.ConditionTrue {
		return true
	}
	if !wanted {
		return false
	}
	name := strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
	if ready == nil {
		c.warn(kind.kind+" "+name, "the server has not looked at it yet", "if this stays so, the server does not work: its log has the reason")
		return false
	}
	about, message := kind.kind+" "+name, ready.Reason+": "+ready.Message
	next := "kubectl describe " + strings.ToLower(kind.kind) + " " + cli.Quoted(object.GetName())
	if !kind.clusterScoped {
		next += " -n " + cli.Quoted(object.GetNamespace())
	}
	if isFailing(kind, conditions, ready) {
		c.fail(about, message, next)
	} else {
		c.warn(about, message, next)
	}
	return false
}

// isFailing reports whether an object that is not ready needs something, rather than works or waits.
func isFailing(kind checkedKind, conditions []metav1.Condition, ready *metav1.Condition) bool {
	switch {
	case apimeta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled):
		return !strings.HasSuffix(ready.Reason, v1alpha1.ReasonSuspended)
	case kind.waits, apimeta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReconciling) && ready.Reason == v1alpha1.ReasonProgressing:
		return false
	}
	return ready.Status == metav1.ConditionFalse && !strings.HasSuffix(ready.Reason, v1alpha1.ReasonSuspended)
}

// noteAuthors adds a line about the authors of changes, the first time that a destination says whether they are reported.
func (c *check) noteAuthors(object *unstructured.Unstructured, conditions []metav1.Condition) {
	const about = "authors"
	reported := apimeta.FindStatusCondition(conditions, v1alpha1.ConditionAuthorsReported)
	for _, each := range c.results {
		if each.Check == about {
			return
		}
	}
	switch {
	case reported == nil:
	case reported.Status == metav1.ConditionTrue:
		c.ok(about, "API servers report them")
	default:
		c.warn(about, fmt.Sprintf("GitDestination %s/%s: %s: %s", object.GetNamespace(), object.GetName(), reported.Reason, reported.Message),
			cli.Docs+"attribution.md has what to look at")
	}
}

// conditionsOf returns the conditions of an object.
func conditionsOf(object *unstructured.Unstructured) []metav1.Condition {
	var of struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &of); err != nil {
		return nil // The server does not store such conditions.
	}
	return of.Status.Conditions
}
