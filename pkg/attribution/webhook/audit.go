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

// Counts say what became of audit events.
type Counts struct {
	// Told is the number of events that gave facts, Ignored that of events which changed nothing that is mirrored.
	Told, Ignored int
	// Unreadable is the number of events that contradict themselves or lack what every event has.
	Unreadable int
}

// FactsOfAudit returns what requests that an API server has carried out did to which objects: creates, updates, patches and
// deletes that succeeded and were no dry runs. Events of level RequestResponse tell exactly; those of lower levels, and
// those that were truncated, tell neither uid nor resourceVersion, except where an object was deleted one by one.
//
// A request that changed nothing reports the resourceVersion that it found, as if it had made it: nothing in an event
// tells them apart. At level Metadata, a deletion that was a dry run by its body looks like a deletion.
func FactsOfAudit(events *auditv1.EventList) ([]attribution.Fact, Counts) {
	var facts []attribution.Fact
	var counts Counts
	for i := range events.Items {
		told, err := factsOfEvent(&events.Items[i])
		switch {
		case err != nil:
			counts.Unreadable++
		case len(told) == 0:
			counts.Ignored++
		default:
			counts.Told++
			facts = append(facts, told...)
		}
	}
	return facts, counts
}

// factsOfEvent returns no facts for an event that says nothing about the content of an object.
func factsOfEvent(event *auditv1.Event) ([]attribution.Fact, error) {
	if !changes(event) {
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
	fact, err := baseOf(event)
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
		identify(&facts[i], string(event.AuditID)+" "+event.RequestReceivedTimestamp.UTC().String())
	}
	return facts, err
}

// operations are the verbs that change objects.
var operations = map[string]v1alpha1.Operation{
	"create": v1alpha1.OperationCreate, "update": v1alpha1.OperationUpdate, "patch": v1alpha1.OperationUpdate,
	"delete": v1alpha1.OperationDelete, "deletecollection": v1alpha1.OperationDelete,
}

// scaleSubresource is the one that API servers answer with the uid and the resourceVersion of the object that is scaled.
const scaleSubresource = "scale"

// withoutContent are subresources that leave what is mirrored as it is: the status, and connections to what runs.
var withoutContent = []string{"status", "attach", "exec", "log", "portforward", "proxy"}

// changes says whether an event is the end of a request that changed objects.
func changes(event *auditv1.Event) bool {
	_, mutates := operations[event.Verb]
	return mutates && event.Stage == auditv1.StageResponseComplete && event.ObjectRef != nil && event.ObjectRef.Resource != "" &&
		!slices.Contains(withoutContent, event.ObjectRef.Subresource) &&
		event.ResponseStatus != nil && event.ResponseStatus.Code >= http.StatusOK && event.ResponseStatus.Code < http.StatusMultipleChoices
}

// baseOf is what all facts of an event have in common.
func baseOf(event *auditv1.Event) (attribution.Fact, error) {
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

// operationOf knows two more creations than the verb: a server-side apply and an update may make the object, which the
// answer's code tells. Whatever is done to a subresource updates the object.
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

// namespaceOf is the namespace that an object is in. API servers report a Namespace as being in itself.
func namespaceOf(group, resource, reported string) string {
	if group == "" && resource == "namespaces" {
		return ""
	}
	return reported
}
