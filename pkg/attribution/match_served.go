// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// writerOf returns the fact of the request that has written what an object holds, but its status; nil if that is not certain,
// and for kinds that this server does not serve. The server reports every request that writes more than the status of its
// own kinds, with the state that it made. So the newest of them up to the object's state has made its content, and the states
// after it differ in their status. A report that is lost is noticed by the time that the object says it was written.
func writerOf(of Object, facts []*kept, object *unstructured.Unstructured) *kept {
	if of.Group != v1alpha1.GroupName {
		return nil
	}
	var last *kept
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
