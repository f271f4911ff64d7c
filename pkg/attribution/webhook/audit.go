// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
)

// Counts is the number of audit events by outcome.
type Counts struct {
	// WithFacts is the number of events that produced facts. Ignored is the number of events that changed nothing
	// that is mirrored.
	WithFacts, Ignored int
	// Unreadable is the number of events that are contradictory or lack a required field.
	Unreadable int
}

// FactsOfAudit returns the changes that an API server has made to objects: creates, updates, patches and deletes that
// succeeded and were not dry runs. Events of level RequestResponse are exact. Events of lower levels, and truncated
// ones, have neither uid nor resourceVersion, except for the deletion of a single object.
//
// A request that changed nothing reports the resourceVersion that it found as if it had created it: an event does not
// distinguish the two. At level Metadata, a deletion whose body requests a dry run looks like a deletion.
func FactsOfAudit(events *auditv1.EventList) ([]attribution.Fact, Counts) {
	var facts []attribution.Fact
	var counts Counts
	for i := range events.Items {
		converted, err := factsOfEvent(&events.Items[i])
		switch {
		case err != nil:
			counts.Unreadable++
		case len(converted) == 0:
			counts.Ignored++
		default:
			counts.WithFacts++
			facts = append(facts, converted...)
		}
	}
	return facts, counts
}

// factsOfEvent returns the facts of one event. It returns none for an event that does not change the content of an object.
func factsOfEvent(event *auditv1.Event) ([]attribution.Fact, error) {
	if !isSuccessfulWrite(event) {
		return nil, nil
	}
	request, err := url.ParseRequestURI(event.RequestURI)
	if err != nil {
		return nil, fmt.Errorf("reading the URI of the request: %w", err)
	}
	query := request.Query()
	if query.Has("dryRun") {
		return nil, nil
	}
	fact, err := newFact(event)
	if err != nil {
		return nil, err
	}
	var facts []attribution.Fact
	switch event.Verb {
	case "delete":
		facts, err = factsOfDelete(event, fact)
	case "deletecollection":
		facts, err = factsOfDeleteCollection(event, fact, query)
	default:
		facts, err = factsOfWrite(event, fact)
	}
	for i := range facts {
		setID(&facts[i], string(event.AuditID)+" "+event.RequestReceivedTimestamp.UTC().String())
	}
	return facts, err
}

// operations maps the verbs that change objects to their operations.
var operations = map[string]v1alpha1.Operation{
	"create": v1alpha1.OperationCreate, "update": v1alpha1.OperationUpdate, "patch": v1alpha1.OperationUpdate,
	"delete": v1alpha1.OperationDelete, "deletecollection": v1alpha1.OperationDelete,
}

// scaleSubresource is the subresource whose response has the uid and the resourceVersion of the scaled object.
const scaleSubresource = "scale"

// ignoredSubresources do not change mirrored content: the status, and connections to containers and services.
var ignoredSubresources = []string{"status", "attach", "exec", "log", "portforward", "proxy"}

// isSuccessfulWrite reports whether an event is the completion of a request that changed objects.
func isSuccessfulWrite(event *auditv1.Event) bool {
	_, mutates := operations[event.Verb]
	return mutates && event.Stage == auditv1.StageResponseComplete && event.ObjectRef != nil && event.ObjectRef.Resource != "" &&
		!slices.Contains(ignoredSubresources, event.ObjectRef.Subresource) &&
		event.ResponseStatus != nil && event.ResponseStatus.Code >= http.StatusOK && event.ResponseStatus.Code < http.StatusMultipleChoices
}

// newFact returns a fact with the fields that all facts of an event share.
func newFact(event *auditv1.Event) (attribution.Fact, error) {
	actor := actorOf(event.User, "")
	if event.ImpersonatedUser != nil {
		actor = actorOf(*event.ImpersonatedUser, event.User.Username)
	}
	if actor.Username == "" {
		return attribution.Fact{}, fmt.Errorf("the event of a request for %s has no user", event.ObjectRef.Resource)
	}
	object := event.ObjectRef
	return attribution.Fact{
		Signal: attribution.Audit, Operation: operationOf(event), Actor: actor,
		Group: object.APIGroup, Resource: object.Resource, Name: object.Name,
		Namespace: namespaceOf(object.APIGroup, object.Resource, object.Namespace),
		Begun:     event.RequestReceivedTimestamp.Time, Ended: event.StageTimestamp.Time,
	}, nil
}

// operationOf returns the operation of an event. A server-side apply or an update that created the object has the
// response code 201 and counts as CREATE. Every write to a subresource counts as UPDATE of the object.
func operationOf(event *auditv1.Event) v1alpha1.Operation {
	operation := operations[event.Verb]
	switch {
	case operation == v1alpha1.OperationDelete:
		return operation
	case event.ObjectRef.Subresource != "":
		return v1alpha1.OperationUpdate
	case event.ResponseStatus.Code == http.StatusCreated:
		return v1alpha1.OperationCreate
	}
	return operation
}

// namespaceOf returns the namespace of an object. API servers report a Namespace object as being in itself; it has none.
func namespaceOf(group, resource, reported string) string {
	if group == "" && resource == "namespaces" {
		return ""
	}
	return reported
}
