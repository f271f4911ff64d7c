// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// writerOf returns the fact of the request that wrote an object except for its status; nil if uncertain, and for kinds
// that this server does not serve. The server reports every request that writes more than the status of its own kinds,
// with the resulting resourceVersion. So the newest of these up to the object's resourceVersion wrote its content, and
// later states differ only in their status. The time in the object's managedFields shows whether a report was lost.
func writerOf(of Object, facts []*storedFact, object *unstructured.Unstructured) *storedFact {
	if of.Group != v1alpha1.GroupName {
		return nil
	}
	var last *storedFact
	for _, k := range facts {
		if k.Signal != Audit || isDeletion(k) || k.After == "" || newer(k.After, object.GetResourceVersion()) {
			continue
		}
		if last == nil || newer(k.After, last.After) {
			last = k
		}
	}
	if last == nil {
		return nil
	}
	newest, _, _ := newestEntry(object)
	if written, err := time.Parse(time.RFC3339, newest.time); err != nil || !last.at(written) {
		return nil
	}
	return last
}
