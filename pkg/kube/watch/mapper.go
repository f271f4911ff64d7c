// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// mapperAge is how long a Mapper uses an answer of discovery. kube-controller-manager asks every 30 seconds, also while nobody needs it.
const mapperAge = time.Minute

// KindMapper finds the resources of kinds, as a meta.RESTMapper does.
type KindMapper interface {
	RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
}

// Mapper finds the resources of kinds. It asks the API server again when the answer that it has is older than a minute, and so knows
// types that are defined after it was made. While the API server does not answer, it goes on with the last answer. It may be used
// concurrently.
type Mapper struct {
	client discovery.DiscoveryInterfaceWithContext
	clock  clock.PassiveClock

	mu     sync.Mutex
	asked  time.Time
	answer meta.RESTMapper
}

var _ KindMapper = &Mapper{}

// NewMapper returns a mapper that asks when it is used.
func NewMapper(client discovery.DiscoveryInterfaceWithContext, clock clock.PassiveClock) *Mapper {
	return &Mapper{client: client, clock: clock}
}

// RESTMapping returns where objects of a kind are, in the first of the versions that is served; without versions, in the preferred one.
// If there is none, the error is one that meta.IsNoMatchError knows.
func (m *Mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	answer, err := m.current()
	if err != nil {
		return nil, err
	}
	return answer.RESTMapping(kind, versions...)
}

// current returns an answer that is not too old, if there is one.
func (m *Mapper) current() (meta.RESTMapper, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	if m.answer != nil && now.Sub(m.asked) < mapperAge {
		return m.answer, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), discoveryTimeout)
	defer cancel()
	groups, err := restmapper.GetAPIGroupResourcesWithContext(ctx, m.client)
	switch {
	case err == nil:
		m.answer = restmapper.NewDiscoveryRESTMapper(groups)
	case m.answer == nil:
		return nil, fmt.Errorf("find out which types the API server serves: %w", err)
	default:
		klog.Background().Error(err, "The API server does not say which types it serves; those known are used for another minute")
	}
	m.asked = now
	return m.answer, nil
}
