// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"slices"
	"testing"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
)

// checkFact checks the invariants that readers of facts rely on.
func checkFact(t *testing.T, fact *attribution.Fact) {
	t.Helper()
	operations := []v1alpha1.Operation{v1alpha1.OperationCreate, v1alpha1.OperationUpdate, v1alpha1.OperationDelete}
	switch {
	case fact.ID == "", fact.Signal == "", fact.Actor.Username == "", !slices.Contains(operations, fact.Operation):
		t.Errorf("fact is incomplete: %+v", fact)
	case (fact.Name == "") != (fact.Collection != nil):
		t.Errorf("fact has neither an object nor a collection, or both: %+v", fact)
	case fact.After != "" && fact.UID == "":
		t.Errorf("fact without an object has a resourceVersion: %+v", fact)
	case fact.Lasting && (fact.Operation != v1alpha1.OperationDelete || fact.UID == ""):
		t.Errorf("fact is lasting, but not the deletion of an object with a uid: %+v", fact)
	case fact.Signal == attribution.Audit && (fact.Before != "" || fact.Content != "" || fact.Replicas != nil):
		t.Errorf("fact has fields that audit events lack: %+v", fact)
	case fact.Signal == attribution.Admission && fact.After != "":
		t.Errorf("fact has fields that admission reviews lack: %+v", fact)
	}
}

func FuzzAudit(f *testing.F) {
	seeds := []string{
		`{}`, `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[]}`, `{"items":[{"verb":"create"}]}`,
		`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[{"stage":"ResponseComplete","requestURI":"/x?dryRun=%zz","verb":"delete",` +
			`"user":{"username":"a"},"objectRef":{"resource":"pods","name":"a"},"responseStatus":{"code":200},"requestObject":{"dryRun":[]},` +
			`"responseObject":{"kind":"Status","apiVersion":"v1","details":{"uid":"u"}}}]}`,
	}
	for _, event := range []any{
		event(), event(request("deletecollection", "/x", 200), response(`{"items":[{"metadata":{"name":"a","uid":"b"}}]}`)),
	} {
		seed, err := json.Marshal(map[string]any{"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": []any{event}})
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, string(seed))
	}
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		events, err := readEvents(body)
		if err != nil {
			return
		}
		facts, counts := FactsOfAudit(events)
		if counts.WithFacts+counts.Ignored+counts.Unreadable != len(events.Items) {
			t.Errorf("counts %+v do not add up to %d events", counts, len(events.Items))
		}
		for i := range facts {
			checkFact(t, &facts[i])
		}
	})
}

func FuzzReview(f *testing.F) {
	seeds := []string{
		`{}`, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"a"}}`,
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"a","operation":"DELETE","userInfo":{"username":"a"},` +
			`"oldObject":{"metadata":{"name":"a","uid":"b","finalizers":["a"]}},"options":{"propagationPolicy":"Orphan"}}}`,
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"a","operation":"UPDATE","subResource":"scale",` +
			`"userInfo":{"username":"a"},"object":{"spec":{"replicas":1}},"oldObject":{"metadata":{"name":"a","uid":"b"}}}}`,
	}
	update := review()
	update.Kind, update.APIVersion = "AdmissionReview", "admission.k8s.io/v1"
	seed, err := json.Marshal(update)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range append(seeds, string(seed)) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		review, err := readReview(body)
		if err != nil {
			return
		}
		fact, err := FactOfReview(review, begun, hash)
		if err == nil && fact != nil {
			checkFact(t, fact)
		}
	})
}
