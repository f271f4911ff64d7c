// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig/metrics"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

const group = configbutler.GroupName

// WorkResource is the resource that rows of the work store are encrypted as. No kind has its name.
var WorkResource = schema.GroupResource{Group: group, Resource: "work"}

// reloadInterval is how often a configuration is read again.
const reloadInterval = 10 * time.Second

// Config says which configuration encrypts.
type Config struct {
	// Origin has the configuration.
	Origin Origin
	// Reload follows its changes.
	Reload bool
	// ReloadInterval (10 s) is how often it is read again.
	ReloadInterval time.Duration
	// ServerID names this process in upstream's metrics.
	ServerID string
}

// Encrypter encrypts and opens what is stored, under the configuration in force.
type Encrypter struct {
	config       Config
	transformers value.ResourceTransformers
	checks       []healthz.HealthChecker
	// dynamic are the transformers when they follow changes.
	dynamic *encryptionconfig.DynamicTransformers
	// content is the configuration in force.
	content atomic.Pointer[[]byte]
	// reloading is held by the one who puts another into force.
	reloading sync.Mutex
}

// Open loads a configuration, and follows its changes if it is told to. What it loads lives as long as ctx: the
// connections to KMS plugins have to outlive the last request.
func Open(ctx context.Context, config Config) (*Encrypter, error) {
	if config.ReloadInterval == 0 {
		config.ReloadInterval = reloadInterval
	}
	s := &Encrypter{config: config}
	content, err := config.Origin.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the encryption configuration: %w", err)
	}
	loaded, stop, err := s.load(ctx, content)
	if err != nil {
		return nil, err
	}
	s.content.Store(&content)
	s.checks = loaded.HealthChecks
	metrics.RecordEncryptionConfigLastConfigInfo(config.ServerID, loaded.EncryptionFileContentHash)
	if !config.Reload {
		s.transformers = encryptionconfig.StaticTransformers(loaded.Transformers)
		return s, nil
	}
	s.dynamic = encryptionconfig.NewDynamicTransformers(loaded.Transformers, loaded.HealthChecks[0], stop, loaded.KMSCloseGracePeriod)
	s.transformers = s.dynamic
	s.checks = []healthz.HealthChecker{s.dynamic}
	go s.follow(ctx)
	return s, nil
}

// Transformers encrypt and open objects, and rows as [WorkResource].
func (s *Encrypter) Transformers() value.ResourceTransformers { return s.transformers }

// Work encrypts and opens the rows of the work store.
func (s *Encrypter) Work() value.Transformer {
	return explaining{s.transformers.TransformerForResource(WorkResource)}
}

// HealthChecks fail while a KMS plugin does.
func (s *Encrypter) HealthChecks() []healthz.HealthChecker { return s.checks }

// load makes the transformers of a configuration. stop ends what they run.
func (s *Encrypter) load(ctx context.Context, content []byte) (_ *encryptionconfig.EncryptionConfiguration, stop func(), err error) {
	origin := s.config.Origin
	path, release, err := origin.path(content)
	if err != nil {
		return nil, nil, fmt.Errorf("loading %s: %w", origin, err)
	}
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	loaded, err := encryptionconfig.LoadEncryptionConfig(ctx, path, s.config.Reload, s.config.ServerID)
	if err == nil {
		err = checkWorkIsNamed(loaded)
	}
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("loading %s: %w", origin, err)
	}
	return loaded, cancel, nil
}

// checkWorkIsNamed refuses a configuration that names kinds and forgets the rows of the work store, which hold whatever
// is mirrored. Whoever wants them plain says so, with the provider identity.
func checkWorkIsNamed(loaded *encryptionconfig.EncryptionConfiguration) error {
	for _, name := range []schema.GroupResource{WorkResource, {Group: group, Resource: "*"}, {Group: "*", Resource: "*"}} {
		if _, named := loaded.Transformers[name]; named {
			return nil
		}
	}
	return fmt.Errorf("resources: nothing is said about %s, the changes on their way to Git, Secrets among them: "+
		"name it, or *.%s, or *.*", WorkResource, group)
}

// follow puts changes of the configuration into force until ctx ends.
func (s *Encrypter) follow(ctx context.Context) {
	ticker := time.NewTicker(s.config.ReloadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := s.Reload(ctx); err != nil && ctx.Err() == nil {
			metrics.RecordEncryptionConfigAutomaticReloadFailure(s.config.ServerID)
			klog.FromContext(ctx).Error(err, "The encryption configuration cannot be loaded again, the one before stays in force")
		}
	}
}

// Reload puts the configuration into force if it has changed and its KMS plugins are well, without waiting for the
// interval. ctx must outlive the encrypter's use. Only a encrypter that follows changes may be told to.
func (s *Encrypter) Reload(ctx context.Context) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	content, err := s.config.Origin.Read(ctx)
	if errors.Is(err, ErrAbsent) {
		return errors.Join(err, s.restore(ctx))
	}
	if err != nil || bytes.Equal(content, *s.content.Load()) {
		return err
	}
	loaded, stop, err := s.load(ctx, content)
	if err != nil {
		return err
	}
	if err := check(ctx, loaded.HealthChecks[0]); err != nil {
		stop()
		return err
	}
	s.dynamic.Set(loaded.Transformers, stop, loaded.HealthChecks[0], loaded.KMSCloseGracePeriod)
	s.content.Store(&content)
	metrics.RecordEncryptionConfigAutomaticReloadSuccess(s.config.ServerID, loaded.EncryptionFileContentHash)
	klog.FromContext(ctx).Info("A changed encryption configuration is in force", "origin", s.config.Origin.String())
	return nil
}

// restore puts back what somebody removed from a home: this process may be the last that knows the keys.
func (s *Encrypter) restore(ctx context.Context) error {
	home, ours := s.config.Origin.(Home)
	if !ours {
		return nil
	}
	// Who ends the process may remove what it used.
	if err := ctx.Err(); err != nil {
		return err
	}
	return home.Change(ctx, func(content []byte) ([]byte, error) {
		if content != nil {
			return content, nil
		}
		return *s.content.Load(), nil
	})
}

// check asks a health check that takes a request.
func check(ctx context.Context, checker healthz.HealthChecker) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		return err
	}
	return checker.Check(request)
}
