// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Rebuild has the index say what all EnvironmentDependencies do. It is done before Run, and may be done at any time after it.
func (d *Detector) Rebuild(ctx context.Context) error {
	mark := d.config.Index.Mark()
	var records []v1alpha1.EnvironmentDependency
	list := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return d.config.Slipstream.EnvironmentDependencies(metav1.NamespaceAll).List(ctx, options)
	})
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if record, ok := object.(*v1alpha1.EnvironmentDependency); ok {
			records = append(records, *record)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the EnvironmentDependencies: %w", err)
	}
	first := d.config.Index.Len() == 0
	found := d.config.Index.Rebuild(records, mark)
	if !first && len(found) > 0 {
		differences.Add(float64(len(found)))
		klog.FromContext(ctx).Info("The index of dependencies was not what the records say", "differences", len(found))
	}
	return nil
}
