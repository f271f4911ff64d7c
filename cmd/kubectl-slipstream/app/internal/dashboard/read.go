// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// maxList is the number of rows of a page.
const maxList = 500

// listed are the resources that the page reads.
var listed = slices.Concat(streamed, []string{
	"syncstatuses", "environmentdependencies", "catalogworkloads", "gitrepoconfigs", "watchrules", "clusterwatchrules", "syncpolicies",
})

// target is an object that a call is about.
type target struct {
	Resource  string `json:"resource"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// check refuses a target that is none of the objects that the page shows.
func (t *target) check() error {
	if err := checkResource(t.Resource); err != nil {
		return err
	}
	if err := checkName("name", t.Name); err != nil {
		return err
	}
	if slices.Contains(clusterScoped, t.Resource) {
		t.Namespace = ""
		return nil
	}
	return checkName("namespace", t.Namespace)
}

// checkWith also accepts one resource that is not of configbutler.ai. Its target is a namespace, or nothing if its objects have none.
func (t *target) checkWith(other string) error {
	if t.Resource != other {
		return t.check()
	}
	if t.Namespace == "" {
		return nil
	}
	return checkName("namespace", t.Namespace)
}

func checkResource(resource string) error {
	if !slices.Contains(listed, resource) {
		return &refusal{http.StatusBadRequest, fmt.Sprintf("The page has no resource %q", resource), ""}
	}
	return nil
}

// objectsOf returns the client for objects of configbutler.ai.
func (c *cluster) objectsOf(resource, namespace string) dynamic.ResourceInterface {
	objects := c.objects.Resource(v1alpha1.SchemeGroupVersion.WithResource(resource))
	if namespace == "" {
		return objects
	}
	return objects.Namespace(namespace)
}

// list responds with a page of a list.
func (w *workspace) list(c *call) error {
	var request struct {
		Resource      string            `json:"resource"`
		Namespace     string            `json:"namespace"`
		LabelSelector string            `json:"labelSelector"`
		Fields        map[string]string `json:"fields"`
		Limit         int64             `json:"limit"`
		Continue      string            `json:"continue"`
	}
	if err := c.decode(&request); err != nil {
		return err
	}
	if err := checkResource(request.Resource); err != nil {
		return err
	}
	of := cli.Selection{Resource: request.Resource, Namespace: request.Namespace, Labels: request.LabelSelector}
	if slices.Contains(clusterScoped, of.Resource) {
		of.Namespace = ""
	}
	if of.Namespace != "" {
		if err := checkName("namespace", of.Namespace); err != nil {
			return err
		}
	}
	if _, err := labels.Parse(of.Labels); err != nil {
		return &refusal{http.StatusBadRequest, "The label selector cannot be read: " + err.Error(), ""}
	}
	var err error
	if of.Fields, err = fieldSelector(of.Resource, request.Fields); err != nil {
		return err
	}
	if request.Limit < 1 || request.Limit > maxList {
		request.Limit = maxList
	}
	page, err := w.cluster.tables.Page(c.r.Context(), of, request.Limit, request.Continue)
	if err != nil {
		return err
	}
	rows := make([]row, len(page.Rows))
	for i, r := range page.Rows {
		rows[i] = rowOf(r)
	}
	return respond(c, map[string]any{"columns": page.Columns, "rows": rows, "continue": page.Continue})
}

// fieldSelector returns the selector for fields of a resource.
func fieldSelector(resource string, terms map[string]string) (string, error) {
	supported := []string{metav1.ObjectNameField}
	switch resource {
	case "changes":
		supported = append(supported, v1alpha1.ChangeFields()...)
	case "environments":
		supported = append(supported, v1alpha1.EnvironmentStateField)
	}
	var selectors []fields.Selector
	for _, field := range slices.Sorted(maps.Keys(terms)) {
		if !slices.Contains(supported, field) {
			return "", &refusal{
				http.StatusBadRequest, fmt.Sprintf("The field %q selects no %s: it is %s", field, resource, strings.Join(supported, ", ")), "",
			}
		}
		if terms[field] != "" {
			selectors = append(selectors, fields.OneTermEqualSelector(field, terms[field]))
		}
	}
	return fields.AndSelectors(selectors...).String(), nil
}

// object responds with an object, without the fields that say which client has written which field.
func (w *workspace) object(c *call) error {
	var of target
	if err := c.decode(&of); err != nil {
		return err
	}
	if err := of.check(); err != nil {
		return err
	}
	found, err := w.cluster.objectsOf(of.Resource, of.Namespace).Get(c.r.Context(), of.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	found.SetManagedFields(nil)
	return respond(c, map[string]any{"object": found})
}

// change responds with a Change and the contents before and after it. The server masks the values of Secrets.
func (w *workspace) change(c *call) error {
	of := target{Resource: "changes"}
	var request struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	}
	if err := c.decode(&request); err != nil {
		return err
	}
	of.Namespace, of.Name = request.Namespace, request.Name
	if err := of.check(); err != nil {
		return err
	}
	ctx := c.r.Context()
	change, err := w.cluster.api.Changes(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	change.ManagedFields = nil
	response := struct {
		Change *v1alpha1.Change `json:"change"`
		Before string           `json:"before"`
		After  string           `json:"after"`
		Error  string           `json:"error"`
	}{Change: change}
	difference, err := w.cluster.api.Changes(of.Namespace).Diff(ctx, of.Name, metav1.GetOptions{})
	if err == nil {
		response.Before, err = contentOf(difference.Before)
	}
	if err == nil {
		response.After, err = contentOf(difference.After)
	}
	if err != nil {
		if ctx.Err() != nil || apierrors.IsUnauthorized(err) {
			return err
		}
		response.Error = w.cluster.sentence(ctx, err)
	}
	return respond(c, response)
}

// contentOf returns an object as YAML, empty if there is none.
func contentOf(raw *runtime.RawExtension) (string, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return "", nil
	}
	content, err := yaml.JSONToYAML(raw.Raw)
	return string(content), err
}
