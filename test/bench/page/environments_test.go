// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// environments are in the namespaces of teams. updates is how many are updated at once.
	environments, teams, updates = 1000, 10, 100
	// writers is the number of clients that create and update them concurrently.
	writers = 10
)

func team(number int) string { return fmt.Sprintf("team-%d", number%teams) }

func environment(number int) string { return fmt.Sprintf("environment-%d", number) }

// createEnvironments creates a catalog for each team, and environments that are not synced, and waits until all are reconciled.
func (s *testCluster) createEnvironments(b *testing.B) {
	b.Helper()
	s.CreateNamespace(b, "source")
	for number := range teams {
		s.CreateNamespace(b, team(number))
		s.Apply(b, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: shop, namespace: %s}
spec: {sourceNamespace: source, workloads: [{kind: Deployment, name: web}]}
`, team(number)))
	}
	err := each(b.Context(), environments, func(ctx context.Context, number int) error {
		_, err := s.slipstream.ConfigbutlerV1alpha1().Environments(team(number)).Create(ctx, &v1alpha1.Environment{
			ObjectMeta: metav1.ObjectMeta{Name: environment(number)},
			Spec: v1alpha1.EnvironmentSpec{
				CatalogRef: v1alpha1.ObjectReference{Name: "shop"}, TargetNamespace: fmt.Sprint("target-", number),
			},
		}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	mirrortest.Eventually(b, "all environments are reconciled", func(ctx context.Context) error {
		all, err := s.slipstream.ConfigbutlerV1alpha1().Environments("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range all.Items {
			if all.Items[i].Status.ObservedGeneration == 0 {
				return fmt.Errorf("%s is not reconciled", all.Items[i].Name)
			}
		}
		return nil
	})
}

// updateEnvironments sets a label of some environments.
func (s *testCluster) updateEnvironments(b *testing.B, label string) error {
	b.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"bench":%q}}}`, label)
	return each(b.Context(), updates, func(ctx context.Context, number int) error {
		_, err := s.slipstream.ConfigbutlerV1alpha1().Environments(team(number)).
			Patch(ctx, environment(number), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// each calls a function with the numbers from 0 to count, concurrently.
func each(ctx context.Context, count int, do func(ctx context.Context, number int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for number := range count {
		group.Go(func() error { return do(ctx, number) })
	}
	return group.Wait()
}
