// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

// name is the server's name in logs and in OpenAPI.
const name = "slipstream"

// Config configures a server. Options fill Generic before it is completed.
type Config struct {
	Generic *genericapiserver.RecommendedConfig
	// Clock is used for ages in tables.
	Clock clock.PassiveClock
	// Validation configures validation.
	Validation validation.Options
	// Recorder records the author of each change of the served kinds. Optional.
	Recorder registry.Recorder
	// Plans compute what syncs of environments would change. Optional: without it, plans are rejected.
	Plans registry.Plans
	// Past reads what was mirrored to Git. Optional: without it, requests for the past are rejected.
	Past registry.Past
	// Notifications send test messages of NotificationSinks. Optional: without it, tests are rejected.
	Notifications registry.Notifications

	scheme *runtime.Scheme
	codecs serializer.CodecFactory
}

// CompletedConfig creates a server. Only Complete returns one.
type CompletedConfig struct {
	config  Config
	generic genericapiserver.CompletedConfig
}

// NewConfig returns a configuration for the kinds of scheme with their OpenAPI documents.
func NewConfig(scheme *runtime.Scheme, codecs serializer.CodecFactory) *Config {
	generic := genericapiserver.NewRecommendedConfig(codecs)
	addOpenAPI(&generic.Config, scheme)
	generic.BuildHandlerChainFunc = func(handler http.Handler, config *genericapiserver.Config) http.Handler {
		handler = genericapiserver.DefaultBuildHandlerChain(withRedactedLogs(withEmptyBodies(handler)), config)
		return withoutTraceState(withQuietDiscovery(handler))
	}
	return &Config{Generic: generic, Clock: clock.RealClock{}, scheme: scheme, codecs: codecs}
}

// Complete fills in derived values. The configuration must not be changed afterwards.
func (c *Config) Complete() CompletedConfig {
	return CompletedConfig{config: *c, generic: c.Generic.Complete()}
}

// New creates the server with all kinds installed. It opens the storage of the kinds, which Server.Run closes.
func (c CompletedConfig) New() (*Server, error) {
	generic, err := c.generic.New(name, genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("making the generic API server: %w", err)
	}
	namespaces, err := c.namespaceLifecycle()
	if err != nil {
		return nil, err
	}
	storage, err := registry.NewStorage(registry.Config{
		Scheme:          c.config.scheme,
		RESTOptions:     c.generic.RESTOptionsGetter,
		Clock:           c.config.Clock,
		Validation:      c.config.Validation,
		Recorder:        c.config.Recorder,
		Plans:           c.config.Plans,
		Past:            c.config.Past,
		Notifications:   c.config.Notifications,
		Authorizer:      c.generic.Authorization.Authorizer,
		Labels:          c.namespaceLabels,
		RecordAdmission: namespaces,
	})
	if err != nil {
		return nil, err
	}
	parameters := runtime.NewParameterCodec(c.config.scheme)
	group := genericapiserver.NewDefaultAPIGroupInfo(v1alpha1.GroupName, c.config.scheme, parameters, c.config.codecs)
	group.NegotiatedSerializer = withoutProtobuf{group.NegotiatedSerializer}
	group.OptionsExternalVersion = &metav1.Unversioned
	group.VersionedResourcesStorageMap = map[string]map[string]rest.Storage{
		v1alpha1.SchemeGroupVersion.Version: storage.Endpoints,
	}
	if err := generic.InstallAPIGroup(&group); err != nil {
		return nil, fmt.Errorf("installing the group %s: %w", v1alpha1.GroupName, err)
	}
	// Ready means that every list is answered: the watch caches fill after the server has begun to listen.
	if err := generic.AddPostStartHook("storage-readiness", generic.StorageReadinessHook.Hook); err != nil {
		return nil, fmt.Errorf("adding the check of the storage: %w", err)
	}
	return &Server{Generic: generic, Records: storage.Records}, nil
}

// namespaceLabels returns the labels of a namespace from the admission informer, or false if it does not exist.
func (c CompletedConfig) namespaceLabels(namespace string) (labels.Set, bool) {
	found, err := c.config.Generic.SharedInformerFactory.Core().V1().Namespaces().Lister().Get(namespace)
	if err != nil {
		return nil, false
	}
	return found.Labels, true
}

// namespaceLifecycle rejects new records in a terminating namespace, which would never be cleaned up. Requests pass the
// same plugin in the admission chain.
func (c CompletedConfig) namespaceLifecycle() (admission.MutationInterface, error) {
	client, err := kubernetes.NewForConfig(c.config.Generic.ClientConfig)
	if err != nil {
		return nil, fmt.Errorf("making a client for the namespaces: %w", err)
	}
	plugin, err := lifecycle.NewLifecycle(nil)
	if err != nil {
		return nil, fmt.Errorf("making the admission of records: %w", err)
	}
	plugin.SetExternalKubeClientSet(client)
	plugin.SetExternalKubeInformerFactory(c.config.Generic.SharedInformerFactory)
	return plugin, nil
}
