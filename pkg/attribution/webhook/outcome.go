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

// object is what facts need of an object. The rest of it may be anything.
type object struct {
	metav1.TypeMeta
	Metadata struct {
		Name              string    `json:"name"`
		Namespace         string    `json:"namespace"`
		UID               types.UID `json:"uid"`
		ResourceVersion   string    `json:"resourceVersion"`
		DeletionTimestamp string    `json:"deletionTimestamp"`
		Finalizers        []string  `json:"finalizers"`
	} `json:"metadata"`
}

// isStatus says whether an answer tells how it went instead of what there is now.
func (o *object) isStatus() bool { return o.Kind == "Status" && o.APIVersion == "v1" }

// readObject reads what an event carries, which is nil where its level or a truncation left it out.
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

// factsOfWrite are those of a create, update or patch. The answer to a request for a scale carries the uid and the
// resourceVersion of the object that is scaled. Other subresources count if their answer does so, too.
func factsOfWrite(event *auditv1.Event, fact attribution.Fact) ([]attribution.Fact, error) {
	answer, err := readObject(event.ResponseObject)
	if err != nil {
		return nil, err
	}
	if answer != nil && !answer.isStatus() && (fact.Name == "" || fact.Name == answer.Metadata.Name) {
		fact.Name = answer.Metadata.Name
		if answer.Metadata.UID != "" && answer.Metadata.ResourceVersion != "" {
			fact.UID, fact.After = answer.Metadata.UID, answer.Metadata.ResourceVersion
		}
	}
	// An object without a name is one whose name was generated and not reported, or none that is stored, like a review.
	if fact.Name == "" {
		return nil, nil
	}
	subresource := event.ObjectRef.Subresource
	if fact.After == "" && subresource != "" && (subresource != scaleSubresource || answer != nil) {
		return nil, nil
	}
	return []attribution.Fact{fact}, nil
}

// factsOfDelete are those of the deletion of one object. The answer is a Status with the uid of what is gone, or the object
// that stays for as long as its finalizers or its grace period want.
func factsOfDelete(event *auditv1.Event, fact attribution.Fact) ([]attribution.Fact, error) {
	if event.ObjectRef.Subresource != "" {
		return nil, nil
	}
	if options, err := readDeleteOptions(event.RequestObject); err != nil || len(options.DryRun) > 0 {
		return nil, err
	}
	answer, err := readObject(event.ResponseObject)
	switch {
	case err != nil:
		return nil, err
	case answer == nil:
	case answer.isStatus():
		fact.UID, err = deletedUID(event.ResponseObject)
	case answer.Metadata.Name == fact.Name:
		fact.UID = answer.Metadata.UID
		if fact.UID != "" && answer.Metadata.DeletionTimestamp != "" {
			fact.Lasting, fact.After = true, answer.Metadata.ResourceVersion
		}
	}
	if err != nil || fact.Name == "" {
		return nil, err
	}
	return []attribution.Fact{fact}, nil
}

// deletedUID is the uid in the details of a Status.
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

// factsOfDeleteCollection are one for each object that the answer lists, as it was before, or one for all that the
// request selected.
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

// readItems returns the items of a list whose items all say which object they are.
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

// lasts says whether an object may stay for a while after it has been deleted: until its finalizers are gone, among them
// those of the options, or until its containers or its content are.
func lasts(group, resource string, deleted *object, options *metav1.DeleteOptions) bool {
	if len(deleted.Metadata.Finalizers) > 0 || group == "" && (resource == "pods" || resource == "namespaces") {
		return true
	}
	if options.PropagationPolicy != nil {
		return *options.PropagationPolicy != metav1.DeletePropagationBackground
	}
	return options.OrphanDependents != nil && *options.OrphanDependents //nolint:staticcheck // Deprecated, and still obeyed.
}
