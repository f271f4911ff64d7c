// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/jsonpath"
)

// fieldManager is the field manager of the manifests that Objects applies.
const fieldManager = "test"

// Objects applies, reads, changes and deletes objects of all kinds as a user, without kubectl. A run of kubectl takes a tenth of a second
// of the processor, and kubectl apply half as much of kube-apiserver's.
//
// Objects are named as in kubectl get: KIND/NAME, where KIND can be a short name. The namespace of objects of the cluster is ignored.
type Objects struct {
	client dynamic.Interface
	raw    rest.Interface
	kinds  *restmapper.DeferredDiscoveryRESTMapper
	// names also knows short names.
	names meta.RESTMapper
}

// Objects returns a client of the user. It reads discovery when it is used first, and again when a kind is unknown.
func (k Kubeconfig) Objects() (*Objects, error) {
	config, err := k.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("failed to create a client: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("failed to create a client of discovery: %w", err)
	}
	cached := memory.NewMemCacheClient(served)
	kinds := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	return &Objects{
		client: client, raw: served.RESTClient(), kinds: kinds, names: restmapper.NewShortcutExpander(kinds, cached, func(string) {}),
	}, nil
}

// apply applies manifests as the administrator.
func (c *Cluster) apply(ctx context.Context, manifests string) error {
	objects, err := c.Admin().Objects()
	if err != nil {
		return err
	}
	return objects.Apply(ctx, "", manifests)
}

// Apply applies manifests with server-side apply. Objects without a namespace are in the given one, in default if it is empty.
func (o *Objects) Apply(ctx context.Context, namespace, manifests string) error {
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := documents.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("failed to decode a manifest: %w", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := o.apply(ctx, namespace, object); err != nil {
			return fmt.Errorf("failed to apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}

func (o *Objects) apply(ctx context.Context, namespace string, object *unstructured.Unstructured) error {
	if own := object.GetNamespace(); own != "" {
		namespace = own
	}
	mapping, err := o.ofKind(object.GroupVersionKind())
	if err != nil {
		return err
	}
	manifest, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	force := true
	options := metav1.PatchOptions{FieldManager: fieldManager, Force: &force, FieldValidation: metav1.FieldValidationStrict}
	_, err = o.in(namespace, mapping).Patch(ctx, object.GetName(), types.ApplyPatchType, manifest, options)
	return err
}

// Get returns an object.
func (o *Objects) Get(ctx context.Context, namespace, object string) (*unstructured.Unstructured, error) {
	objects, name, err := o.named(namespace, object)
	if err != nil {
		return nil, err
	}
	return objects.Get(ctx, name, metav1.GetOptions{})
}

// Field returns what a JSONPath template, such as {.status.state}, selects in an object, empty if it selects nothing.
func (o *Objects) Field(ctx context.Context, namespace, object, template string) (string, error) {
	selected := jsonpath.New(object).AllowMissingKeys(true)
	if err := selected.Parse(template); err != nil {
		return "", err
	}
	found, err := o.Get(ctx, namespace, object)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	err = selected.Execute(&text, found.Object)
	return text.String(), err
}

// Patch changes an object, or a subresource of it, with a JSON merge patch.
func (o *Objects) Patch(ctx context.Context, namespace, object, patch string, subresources ...string) error {
	objects, name, err := o.named(namespace, object)
	if err != nil {
		return err
	}
	_, err = objects.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	return err
}

// Delete deletes an object and does not wait until it is removed. It returns its UID.
func (o *Objects) Delete(ctx context.Context, namespace, object string) (types.UID, error) {
	objects, name, err := o.named(namespace, object)
	if err != nil {
		return "", err
	}
	found, err := objects.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	dependents := metav1.DeletePropagationBackground
	return found.GetUID(), objects.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &dependents})
}

// Cell returns what the server prints for an object in a column, as in the table of kubectl get.
func (o *Objects) Cell(ctx context.Context, namespace, object, column string) (string, error) {
	resource, name, _ := strings.Cut(object, "/")
	mapping, err := o.mapping(resource)
	if err != nil {
		return "", err
	}
	request := o.raw.Get().AbsPath(pathOf(mapping.Resource.GroupVersion())).Resource(mapping.Resource.Resource).Name(name)
	if mapping.Scope.Name() != meta.RESTScopeNameRoot {
		request = request.Namespace(namespace)
	}
	body, err := request.SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var table metav1.Table
	if err := json.Unmarshal(body, &table); err != nil {
		return "", err
	}
	at := slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return strings.EqualFold(c.Name, column) })
	if at < 0 || len(table.Rows) != 1 {
		return "", fmt.Errorf("no cell %s of %s in %s", column, object, body)
	}
	return fmt.Sprint(table.Rows[0].Cells[at]), nil
}

// pathOf returns the path of a version of an API.
func pathOf(version schema.GroupVersion) string {
	if version.Group == "" {
		return "/api/" + version.Version
	}
	return "/apis/" + version.String()
}

// Events returns the type, reason and message of the Events that a field selector selects, a line each. Without a namespace, Events of
// all namespaces are selected.
func (o *Objects) Events(ctx context.Context, namespace, selector string) (string, error) {
	events := o.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(namespace)
	list, err := events.List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return "", err
	}
	var lines strings.Builder
	for _, event := range list.Items {
		fmt.Fprintf(&lines, "%v %v %v\n", event.Object["type"], event.Object["reason"], event.Object["message"])
	}
	return lines.String(), nil
}

// Read sends a GET request to a path, as kubectl get --raw does, and returns the response.
func (o *Objects) Read(ctx context.Context, path string) (string, error) {
	response, err := o.raw.Get().RequestURI(path).DoRaw(ctx)
	return string(response), err
}

// Post sends a request with a JSON body to a path, as kubectl create --raw does, and returns the response.
func (o *Objects) Post(ctx context.Context, path, body string) (string, error) {
	result := o.raw.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx)
	if err := result.Error(); err != nil {
		return "", err
	}
	response, err := result.Raw()
	return string(response), err
}

// named returns a client for the kind of an object, and the name of the object.
func (o *Objects) named(namespace, object string) (dynamic.ResourceInterface, string, error) {
	resource, name, found := strings.Cut(object, "/")
	if !found {
		return nil, "", fmt.Errorf("%q is not KIND/NAME", object)
	}
	mapping, err := o.mapping(resource)
	if err != nil {
		return nil, "", err
	}
	return o.in(namespace, mapping), name, nil
}

// mapping returns the kind with a name, which can be a short name.
func (o *Objects) mapping(resource string) (*meta.RESTMapping, error) {
	partial := schema.ParseGroupResource(resource).WithVersion("")
	kind, err := again(o, func() (schema.GroupVersionKind, error) { return o.names.KindFor(partial) })
	if err != nil {
		return nil, err
	}
	return o.ofKind(kind)
}

func (o *Objects) ofKind(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	return again(o, func() (*meta.RESTMapping, error) { return o.kinds.RESTMapping(kind.GroupKind(), kind.Version) })
}

// in returns a client for the objects of a kind, in a namespace unless they are objects of the cluster.
func (o *Objects) in(namespace string, mapping *meta.RESTMapping) dynamic.ResourceInterface {
	objects := o.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return objects
	}
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return objects.Namespace(namespace)
}

// again looks a kind up again after reading discovery if it is unknown.
func again[T any](o *Objects, look func() (T, error)) (T, error) {
	found, err := look()
	if meta.IsNoMatchError(err) {
		o.kinds.Reset()
		found, err = look()
	}
	return found, err
}
