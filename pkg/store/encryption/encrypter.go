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

// WorkResource is the resource as which rows of the work store are encrypted. No kind has its name.
var WorkResource = schema.GroupResource{Group: group, Resource: "work"}

// reloadInterval is the default interval at which a configuration is reloaded.
const reloadInterval = 10 * time.Second

// Config configures an Encrypter.
type Config struct {
	// Origin is the source of the configuration.
	Origin Origin
	// Reload enables periodic reloading.
	Reload bool
	// ReloadInterval (10 s) is the interval of reloading.
	ReloadInterval time.Duration
	// ServerID identifies this process in upstream's metrics.
	ServerID string
}

// Encrypter encrypts and decrypts stored data with the active configuration.
type Encrypter struct {
	config       Config
	transformers value.ResourceTransformers
	checks       []healthz.HealthChecker
	// dynamic are the transformers if reloading is enabled.
	dynamic *encryptionconfig.DynamicTransformers
	// content is the active configuration.
	content atomic.Pointer[[]byte]
	// reloading is held while another configuration is activated.
	reloading sync.Mutex
}

// Open loads a configuration, and reloads it if configured. Its resources live as long as ctx: the connections to KMS
// plugins must outlive the last request.
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

// Transformers returns the transformers of objects, and of rows as [WorkResource].
func (e *Encrypter) Transformers() value.ResourceTransformers { return e.transformers }

// Work returns the transformer of rows of the work store.
func (e *Encrypter) Work() value.Transformer {
	return explaining{e.transformers.TransformerForResource(WorkResource)}
}

// HealthChecks returns checks that fail while a KMS plugin does.
func (e *Encrypter) HealthChecks() []healthz.HealthChecker { return e.checks }

// load creates the transformers of a configuration. stop releases their resources.
func (e *Encrypter) load(ctx context.Context, content []byte) (_ *encryptionconfig.EncryptionConfiguration, stop func(), err error) {
	origin := e.config.Origin
	path, release, err := origin.path(content)
	if err != nil {
		return nil, nil, fmt.Errorf("loading %s: %w", origin, err)
	}
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	loaded, err := encryptionconfig.LoadEncryptionConfig(ctx, path, e.config.Reload, e.config.ServerID)
	if err == nil {
		err = checkWorkIsNamed(loaded)
	}
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("loading %s: %w", origin, err)
	}
	return loaded, cancel, nil
}

// checkWorkIsNamed returns an error for a configuration that names kinds but not the rows of the work store, which hold
// all mirrored content. To leave these unencrypted, the configuration must name them with the provider identity.
func checkWorkIsNamed(loaded *encryptionconfig.EncryptionConfiguration) error {
	for _, name := range []schema.GroupResource{WorkResource, {Group: group, Resource: "*"}, {Group: "*", Resource: "*"}} {
		if _, named := loaded.Transformers[name]; named {
			return nil
		}
	}
	return fmt.Errorf("resources must include %s, which has the changes that are not in Git yet, including Secrets: "+
		"add it, or *.%s, or *.*", WorkResource, group)
}

// follow reloads the configuration until ctx ends.
func (e *Encrypter) follow(ctx context.Context) {
	ticker := time.NewTicker(e.config.ReloadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := e.Reload(ctx); err != nil && ctx.Err() == nil {
			metrics.RecordEncryptionConfigAutomaticReloadFailure(e.config.ServerID)
			klog.FromContext(ctx).Error(err, "Failed to reload encryption configuration, keeping the previous one")
		}
	}
}

// Reload activates the configuration if it has changed and its KMS plugins are healthy, without waiting for the interval.
// ctx must outlive the encrypter's use. It may only be called if reloading is enabled.
func (e *Encrypter) Reload(ctx context.Context) error {
	e.reloading.Lock()
	defer e.reloading.Unlock()
	content, err := e.config.Origin.Read(ctx)
	if errors.Is(err, ErrAbsent) {
		return errors.Join(err, e.restore(ctx))
	}
	if err != nil || bytes.Equal(content, *e.content.Load()) {
		return err
	}
	loaded, stop, err := e.load(ctx, content)
	if err != nil {
		return err
	}
	if err := check(ctx, loaded.HealthChecks[0]); err != nil {
		stop()
		return err
	}
	e.dynamic.Set(loaded.Transformers, stop, loaded.HealthChecks[0], loaded.KMSCloseGracePeriod)
	e.content.Store(&content)
	metrics.RecordEncryptionConfigAutomaticReloadSuccess(e.config.ServerID, loaded.EncryptionFileContentHash)
	klog.FromContext(ctx).Info("Reloaded encryption configuration", "origin", e.config.Origin.String())
	return nil
}

// restore writes back the configuration if it was deleted from a home: this process may be the last one that has the
// keys.
func (e *Encrypter) restore(ctx context.Context) error {
	home, ours := e.config.Origin.(Home)
	if !ours {
		return nil
	}
	// After shutdown has begun, its files may be removed.
	if err := ctx.Err(); err != nil {
		return err
	}
	return home.Change(ctx, func(content []byte) ([]byte, error) {
		if content != nil {
			return content, nil
		}
		return *e.content.Load(), nil
	})
}

// check runs a health check, which takes a request.
func check(ctx context.Context, checker healthz.HealthChecker) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		return err
	}
	return checker.Check(request)
}
