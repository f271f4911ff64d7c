// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/bench/configmaps"
)

// population is the ConfigMaps that are mirrored.
type population struct{ configmaps.Population }

func newPopulation(core kubernetes.Interface) *population {
	return &population{configmaps.Population{Core: core}}
}

// addSecrets creates a Secret with the name and content of each object.
func (p *population) addSecrets(b *testing.B) {
	b.Helper()
	configmaps.Each(b, 0, p.Size, func(ctx context.Context, number int) error {
		object := p.Next(number)
		secret := &corev1.Secret{ObjectMeta: object.ObjectMeta, StringData: object.Data}
		_, err := p.Core.CoreV1().Secrets(object.Namespace).Create(ctx, secret, metav1.CreateOptions{})
		return err
	})
}
