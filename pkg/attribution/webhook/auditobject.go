// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/configbutler/slipstream/pkg/attribution"
)

// object has the fields of an object that facts need. All other fields are ignored.
type object struct {
	metav1.TypeMeta
	Metadata struct {
		Name              string    `json:"name"`
		Namespace         string    `json:"namespace"`
		UID               types.UID `json:"uid"`
		ResourceVersion   string    `json:"resourceVersion"`
		DeletionTimestamp string    `json:"deletionTimestamp"`
		DeletionGrace     int64     `json:"deletionGracePeriodSeconds"`
		Finalizers        []string  `json:"finalizers"`
	} `json:"metadata"`
}

// isStatus reports whether a response is a Status rather than the object.
func (o *object) isStatus() bool { return o.Kind == "Status" && o.APIVersion == "v1" }

// readObject decodes the object of an event. It returns nil if the event has none because of its level or truncation.
func readObject(raw *runtime.Unknown) (*object, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	read := &object{}
	if err := json.Unmarshal(raw.Raw, read); err != nil {
		return nil, fmt.Errorf("reading the object of an event: %w", err)
	}
	return read, nil
}

// endsDeletion reports whether a write has removed the object: its deletion was requested before, and the write left no
// finalizers. A Namespace has more finalizers in its spec.
func endsDeletion(event *auditv1.Event, response *object) bool {
	of := event.ObjectRef
	return of.Subresource == "" && (of.APIGroup != "" || of.Resource != "namespaces") &&
		response.Metadata.DeletionTimestamp != "" && response.Metadata.DeletionGrace == 0 && len(response.Metadata.Finalizers) == 0
}

// factsOfWrite returns the facts of a create, update or patch. There is none of one that ends a deletion: the author of
// the deletion is the user who requested it, and the response has the resourceVersion of an earlier write. The response to a write of the scale subresource has the
// uid and the resourceVersion of the scaled object. Other subresources count only if their response has them, too.
func factsOfWrite(event *auditv1.Event, fact attribution.Fact) ([]attribution.Fact, error) {
	response, err := readObject(event.ResponseObject)
	if err != nil {
		return nil, err
	}
	if response != nil && endsDeletion(event, response) {
		return nil, nil
	}
	if response != nil && !response.isStatus() && (fact.Name == "" || fact.Name == response.Metadata.Name) {
		fact.Name = response.Metadata.Name
		if response.Metadata.UID != "" && response.Metadata.ResourceVersion != "" {
			fact.UID, fact.After = response.Metadata.UID, response.Metadata.ResourceVersion
		}
	}
	// There is no name if it was generated and not reported, or if the object is not stored, like a SubjectAccessReview.
	if fact.Name == "" {
		return nil, nil
	}
	subresource := event.ObjectRef.Subresource
	if fact.After == "" && subresource != "" && (subresource != scaleSubresource || response != nil) {
		return nil, nil
	}
	return []attribution.Fact{fact}, nil
}

// factsOfDelete returns the facts of the deletion of one object. The response is a Status with the uid of the deleted
// object, or the object itself if finalizers or a grace period delay its removal.
func factsOfDelete(event *auditv1.Event, fact attribution.Fact) ([]attribution.Fact, error) {
	if event.ObjectRef.Subresource != "" {
		return nil, nil
	}
	if options, err := readDeleteOptions(event.RequestObject); err != nil || len(options.DryRun) > 0 {
		return nil, err
	}
	response, err := readObject(event.ResponseObject)
	switch {
	case err != nil:
		return nil, err
	case response == nil:
	case response.isStatus():
		fact.UID, err = deletedUID(event.ResponseObject)
	case response.Metadata.Name == fact.Name:
		fact.UID = response.Metadata.UID
		if fact.UID != "" && response.Metadata.DeletionTimestamp != "" {
			fact.Lasting, fact.After = true, response.Metadata.ResourceVersion
		}
	}
	if err != nil || fact.Name == "" {
		return nil, err
	}
	return []attribution.Fact{fact}, nil
}

// deletedUID returns the uid in the details of a Status.
func deletedUID(raw *runtime.Unknown) (types.UID, error) {
	status := metav1.Status{}
	if err := json.Unmarshal(raw.Raw, &status); err != nil {
		return "", fmt.Errorf("reading the status of a deletion: %w", err)
	}
	if status.Details == nil {
		return "", nil
	}
	return status.Details.UID, nil
}

// factsOfDeleteCollection returns one fact for each object that the response lists, or one fact for the whole selection
// if the response has no list.
func factsOfDeleteCollection(event *auditv1.Event, fact attribution.Fact, query url.Values) ([]attribution.Fact, error) {
	options, err := readDeleteOptions(event.RequestObject)
	if err != nil || len(options.DryRun) > 0 {
		return nil, err
	}
	deleted, listed, err := readItems(event.ResponseObject)
	if err != nil {
		return nil, err
	}
	if !listed {
		fact.Name = ""
		fact.Collection = &attribution.Collection{LabelSelector: query.Get("labelSelector"), FieldSelector: query.Get("fieldSelector")}
		return []attribution.Fact{fact}, nil
	}
	policy := query.Get("propagationPolicy")
	if options.PropagationPolicy == nil && policy != "" {
		options.PropagationPolicy = (*metav1.DeletionPropagation)(&policy)
	}
	facts := make([]attribution.Fact, 0, len(deleted))
	for i := range deleted {
		item := fact
		item.Name, item.UID = deleted[i].Metadata.Name, deleted[i].Metadata.UID
		item.Namespace = namespaceOf(fact.Group, fact.Resource, deleted[i].Metadata.Namespace)
		item.Lasting = lasts(fact.Group, fact.Resource, &deleted[i], options)
		facts = append(facts, item)
	}
	return facts, nil
}

// readItems returns the items of a list. listed is false if there is no list, or if an item lacks a name or uid.
func readItems(raw *runtime.Unknown) (items []object, listed bool, err error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, false, nil
	}
	var list struct {
		Items []object `json:"items"`
	}
	if err := json.Unmarshal(raw.Raw, &list); err != nil {
		return nil, false, fmt.Errorf("reading the list of an event: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Metadata.Name == "" || list.Items[i].Metadata.UID == "" {
			return nil, false, nil
		}
	}
	return list.Items, list.Items != nil, nil
}

func readDeleteOptions(raw *runtime.Unknown) (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	if raw == nil || len(raw.Raw) == 0 {
		return options, nil
	}
	if err := json.Unmarshal(raw.Raw, options); err != nil {
		return nil, fmt.Errorf("reading the options of a deletion: %w", err)
	}
	return options, nil
}

// lasts reports whether an object may exist for a while after its deletion: until its finalizers are removed, including
// those that the options add, or until its containers (a Pod) or its content (a Namespace) are deleted.
func lasts(group, resource string, deleted *object, options *metav1.DeleteOptions) bool {
	if len(deleted.Metadata.Finalizers) > 0 || group == "" && (resource == "pods" || resource == "namespaces") {
		return true
	}
	if options.PropagationPolicy != nil {
		return *options.PropagationPolicy != metav1.DeletePropagationBackground
	}
	return options.OrphanDependents != nil && *options.OrphanDependents //nolint:staticcheck // Deprecated, and still obeyed.
}
