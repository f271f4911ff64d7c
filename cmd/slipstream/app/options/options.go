// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options defines, validates and applies the server's command line options.
package options

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/admission"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	basecompatibility "k8s.io/component-base/compatibility"
	componentconfig "k8s.io/component-base/config"
	leaderoptions "k8s.io/component-base/config/options"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	baseversion "k8s.io/component-base/version"

	"github.com/configbutler/slipstream/pkg/access/egress"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/apiserver"
	"github.com/configbutler/slipstream/pkg/apiserver/admission/callerrights"
	"github.com/configbutler/slipstream/pkg/apiserver/admission/placement"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/mirror"
	"github.com/configbutler/slipstream/pkg/store/keyspace"
)

const (
	// leaseName is the leader election Lease.
	leaseName = "slipstream"
	// securePort is a port that firewalls between managed control planes and their nodes usually allow.
	securePort = 10250
	// watchGracePeriod limits how long a shutdown waits for watches to end. Without it, the watches of the cluster's
	// controllers would keep the process alive for a minute, while a successor waits for the files.
	watchGracePeriod = 5 * time.Second
	// defaultNamespace is the server's namespace if it is unknown.
	defaultNamespace = "slipstream-system"
	// namespaceFile contains the namespace of the pod.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// Options are the server's options.
type Options struct {
	Recommended    *genericoptions.RecommendedOptions
	Server         *genericoptions.ServerRunOptions
	Serving        *ServingOptions
	Storage        *StorageOptions
	Git            *GitOptions
	Mirror         *MirrorOptions
	Attribution    *AttributionOptions
	Environments   *EnvironmentOptions
	Notifications  *NotificationOptions
	Tracing        *TracingOptions
	LeaderElection componentconfig.LeaderElectionConfiguration
	Logging        *logs.Options

	// Namespace is the server's own, which contains its Lease and its Secrets.
	Namespace string
	// Unserved is set by ApplyTo.
	Unserved *Unserved
	// Features are set by --feature-gates.
	Features featuregate.MutableVersionedFeatureGate
}

// GitOptions configure which remotes the server is allowed to connect to.
type GitOptions struct {
	// AllowInsecure allows repositories at http and file URLs.
	AllowInsecure bool
	// AllowDestinations allows addresses that are rejected by default: a word of package egress, an address or a CIDR.
	AllowDestinations []string
	// AzureNamespaces may use the server's identity at Azure, each as NAMESPACE or NAMESPACE/ORGANIZATION.
	AzureNamespaces []string
	// AzureURLs are URLs of Azure DevOps in addition to the public ones.
	AzureURLs []string
	// ProxyFromEnvironment has connections to URLs in objects use the proxies that environment variables name.
	ProxyFromEnvironment bool
}

// Azure returns the server's identity at Azure.
func (o *GitOptions) Azure() (*mirror.AzureIdentity, error) {
	return mirror.NewAzureIdentity(o.AzureNamespaces, o.AzureURLs, o.AllowInsecure, os.Getenv)
}

// New returns the defaults. The codecs are those of the stored kinds.
func New(codecs serializer.CodecFactory) *Options {
	recommended := genericoptions.NewRecommendedOptions(keyspace.Default, codecs.LegacyCodec(v1alpha1.SchemeGroupVersion))
	recommended.SecureServing.BindPort = securePort
	// Without a directory the generated certificate is kept in memory, which a read-only file system allows.
	recommended.SecureServing.ServerCert.CertDirectory = ""
	recommended.SecureServing.ServerCert.PairName = ""
	recommended.Etcd.StorageConfig.EncodeVersioner = runtime.NewMultiGroupVersioner(
		v1alpha1.SchemeGroupVersion, schema.GroupKind{Group: v1alpha1.GroupName})
	callerrights.Register(recommended.Admission.Plugins)
	placement.Register(recommended.Admission.Plugins)
	recommended.Admission.RecommendedPluginOrder = append(recommended.Admission.RecommendedPluginOrder, callerrights.PluginName,
		placement.PluginName)
	components, features := newComponents()
	recommended.FeatureGate = features
	server := genericoptions.NewServerRunOptionsForComponent(basecompatibility.DefaultKubeComponent, components)
	server.ShutdownWatchTerminationGracePeriod = watchGracePeriod
	server.ShutdownSendRetryAfter = true
	return &Options{
		Recommended:   recommended,
		Server:        server,
		Serving:       newServingOptions(),
		Storage:       newStorageOptions(recommended.Etcd),
		Git:           &GitOptions{ProxyFromEnvironment: true},
		Mirror:        newMirrorOptions(),
		Attribution:   newAttributionOptions(),
		Environments:  newEnvironmentOptions(),
		Notifications: &NotificationOptions{},
		Tracing:       &TracingOptions{},
		LeaderElection: componentconfig.LeaderElectionConfiguration{
			LeaderElect:  true,
			ResourceLock: "leases",
			ResourceName: leaseName,
		},
		Logging:   logs.NewOptions(),
		Namespace: ownNamespace(),
		Features:  features,
	}
}

func init() {
	// The libraries share one set of features in a process. None can be added once the set has become a flag.
	utilruntime.Must(logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate))
}

// newComponents registers the libraries' version as the one that determines feature defaults. With the server's own
// version, the libraries' features would count as not yet available.
func newComponents() (basecompatibility.ComponentGlobalsRegistry, featuregate.MutableVersionedFeatureGate) {
	features := utilfeature.DefaultMutableFeatureGate
	components := basecompatibility.NewComponentGlobalsRegistry()
	version := basecompatibility.NewEffectiveVersionFromString(baseversion.DefaultKubeBinaryVersion, "", "")
	utilruntime.Must(components.Register(basecompatibility.DefaultKubeComponent, version, features))
	return components, features
}

// ownNamespace returns the namespace of the pod, if the server runs in one.
func ownNamespace() string {
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	if content, err := os.ReadFile(namespaceFile); err == nil && len(strings.TrimSpace(string(content))) > 0 {
		return strings.TrimSpace(string(content))
	}
	return defaultNamespace
}

// Flags returns the flags by subject.
func (o *Options) Flags() (flags cliflag.NamedFlagSets) {
	flags.Order = []string{"storage", "git", "mirror", "attribution", "notifications", "controllers", "cluster", "secure serving"}
	o.Storage.addFlags(flags.FlagSet("storage"))
	o.Git.addFlags(&flags)
	o.Mirror.addFlags(flags.FlagSet("mirror"))
	o.Attribution.addFlags(flags.FlagSet("attribution"))
	o.Environments.addFlags(&flags)
	o.Notifications.addFlags(&flags)
	controllers := flags.FlagSet("controllers")
	controllers.StringVar(&o.Namespace, "namespace", o.Namespace,
		"The server's own namespace, which contains its Lease and its Secrets. "+
			"Defaults to POD_NAMESPACE or the namespace of the service account.")
	leaderoptions.BindLeaderElectionFlags(&o.LeaderElection, controllers)
	several, single := controller.OneOfSeveral, controller.Single
	for name, defaults := range map[string][2]time.Duration{
		"leader-elect-lease-duration": {several.Duration, single.Duration},
		"leader-elect-renew-deadline": {several.RenewDeadline, single.RenewDeadline},
		"leader-elect-retry-period":   {several.RetryPeriod, single.RetryPeriod},
	} {
		controllers.Lookup(name).Usage += fmt.Sprintf(" 0 means %v with --storage-backend=etcd3 and %v with bbolt.", defaults[0], defaults[1])
	}
	o.Recommended.CoreAPI.AddFlags(flags.FlagSet("cluster"))
	o.Recommended.SecureServing.AddFlags(flags.FlagSet("secure serving"))
	o.Serving.addFlags(flags.FlagSet("secure serving"))
	o.Recommended.Authentication.AddFlags(flags.FlagSet("authentication"))
	o.Recommended.Authorization.AddFlags(flags.FlagSet("authorization"))
	o.Recommended.Audit.AddFlags(flags.FlagSet("auditing"))
	o.Recommended.Admission.AddFlags(flags.FlagSet("admission"))
	o.Recommended.Features.AddFlags(flags.FlagSet("features"))
	o.Recommended.EgressSelector.AddFlags(flags.FlagSet("egress selector"))
	o.Tracing.addFlags(flags.FlagSet("traces"))
	o.Server.AddUniversalFlags(flags.FlagSet("generic"))
	logsapi.AddFlags(o.Logging, flags.FlagSet("logs"))
	return flags
}

func (o *GitOptions) addFlags(flags *cliflag.NamedFlagSets) {
	git := flags.FlagSet("git")
	git.BoolVar(&o.AllowInsecure, "git-allow-insecure", o.AllowInsecure,
		"Allow repositories at http and file URLs, for tests and trusted networks. Only https and ssh are allowed otherwise.")
	git.StringSliceVar(&o.AllowDestinations, "allow-destinations", o.AllowDestinations,
		"Addresses that URLs in objects may refer to although they are refused by default, to protect the server's own environment: "+
			strings.Join(egress.Words(), ", ")+", an IP address or a CIDR. The metadata service of a cloud is link-local. "+
			"Repeat or separate with commas.")
	git.StringSliceVar(&o.AzureNamespaces, "git-azure-namespaces", o.AzureNamespaces,
		"Namespaces whose repositories may use the provider azure, which logs in at Azure DevOps with the workload identity of the server: "+
			"NAMESPACE/ORGANIZATION, or NAMESPACE for all organizations. Users who may write repositories there have the rights of that "+
			"identity. Repeat or separate with commas.")
	git.StringSliceVar(&o.AzureURLs, "git-azure-urls", o.AzureURLs,
		"URLs at which Azure DevOps receives the token of that identity, in addition to https://dev.azure.com and the hosts below "+
			"visualstudio.com. Repeat or separate with commas.")
	git.BoolVar(&o.ProxyFromEnvironment, "proxy-from-environment", o.ProxyFromEnvironment,
		"Connect to repositories and HTTP receivers through the proxies in HTTPS_PROXY, HTTP_PROXY and, for ssh, ALL_PROXY if it is a "+
			"SOCKS5 proxy, except to the hosts in NO_PROXY. An object that names a proxy uses that one.")
}

// Complete fills in derived values.
func (o *Options) Complete() error {
	o.Storage.complete()
	completeAudit(o.Recommended.Audit, o.Storage)
	// One kubeconfig is enough: delegation uses the same cluster unless its own flags say otherwise.
	kubeconfig := o.Recommended.CoreAPI.CoreAPIKubeconfigPath
	if o.Recommended.Authentication.RemoteKubeConfigFile == "" {
		o.Recommended.Authentication.RemoteKubeConfigFile = kubeconfig
	}
	if o.Recommended.Authorization.RemoteKubeConfigFile == "" {
		o.Recommended.Authorization.RemoteKubeConfigFile = kubeconfig
	}
	if o.LeaderElection.ResourceNamespace == "" {
		o.LeaderElection.ResourceNamespace = o.Namespace
	}
	o.LeaderElection = withTimes(o.LeaderElection, o.Storage.Backend)
	if o.Serving.AuthoritySecret != "" {
		return nil
	}
	hosts := []string{leaseName + "." + o.Namespace + ".svc"}
	if err := o.Recommended.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", hosts, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return fmt.Errorf("generating a serving certificate: %w", err)
	}
	return nil
}

// withTimes returns election with the defaults of a storage backend for the times that are 0.
func withTimes(election componentconfig.LeaderElectionConfiguration, backend string) componentconfig.LeaderElectionConfiguration {
	times := controller.Single
	if backend == BackendEtcd3 {
		times = controller.OneOfSeveral
	}
	election.LeaseDuration.Duration = cmp.Or(election.LeaseDuration.Duration, times.Duration)
	election.RenewDeadline.Duration = cmp.Or(election.RenewDeadline.Duration, times.RenewDeadline)
	election.RetryPeriod.Duration = cmp.Or(election.RetryPeriod.Duration, times.RetryPeriod)
	return election
}

// Validate returns all errors in the options.
func (o *Options) Validate() error {
	var errs []error
	errs = append(errs, o.Storage.validate()...)
	errs = append(errs, o.validateRecommended()...)
	errs = append(errs, o.Server.Validate()...)
	errs = append(errs, o.Serving.validate(o.Recommended.SecureServing.ServerCert.CertKey)...)
	errs = append(errs, o.Git.validate()...)
	errs = append(errs, o.Mirror.validate()...)
	errs = append(errs, o.Attribution.validate()...)
	errs = append(errs, o.Environments.validate()...)
	errs = append(errs, o.Notifications.validate()...)
	errs = append(errs, o.Tracing.validate(o.Recommended.EgressSelector.ConfigFile)...)
	errs = append(errs, o.validateLeaderElection()...)
	if problems := content.IsDNS1123Label(o.Namespace); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--namespace=%q is not a name of a namespace: %s", o.Namespace, strings.Join(problems, "; ")))
	}
	return errors.Join(errs...)
}

// validateRecommended validates upstream's options except for the storage, which StorageOptions validate.
func (o *Options) validateRecommended() []error {
	recommended := *o.Recommended
	recommended.Etcd = nil
	return recommended.Validate()
}

func (o *GitOptions) validate() []error {
	var errs []error
	if _, err := egress.NewPolicy(o.AllowDestinations); err != nil {
		errs = append(errs, fmt.Errorf("--allow-destinations: %w", err))
	}
	if _, err := o.Azure(); err != nil {
		errs = append(errs, err)
	}
	return errs
}

func (o *Options) validateLeaderElection() []error {
	election := withTimes(o.LeaderElection, o.Storage.Backend)
	if !election.LeaderElect {
		if o.Storage.Backend == BackendEtcd3 {
			return []error{errors.New("--leader-elect=false is only allowed with --storage-backend=bbolt, which has one replica")}
		}
		return nil
	}
	var errs []error
	if election.RetryPeriod.Duration < time.Second {
		errs = append(errs, fmt.Errorf("--leader-elect-retry-period=%v must be at least 1s", election.RetryPeriod.Duration))
	}
	if election.RenewDeadline.Duration <= election.RetryPeriod.Duration*6/5 {
		errs = append(errs, fmt.Errorf("--leader-elect-renew-deadline=%v must be more than 1.2 times --leader-elect-retry-period=%v",
			election.RenewDeadline.Duration, election.RetryPeriod.Duration))
	}
	if election.LeaseDuration.Duration%time.Second != 0 {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration=%v must be whole seconds, as a Lease has them", election.LeaseDuration.Duration))
	}
	// The leader stops at the renew deadline. What is left of the duration is its time to drain.
	if election.LeaseDuration.Duration <= election.RenewDeadline.Duration+controller.DrainTimeout {
		errs = append(errs, fmt.Errorf(
			"--leader-elect-lease-duration=%v must be more than --leader-elect-renew-deadline=%v plus %v, the time in which a leader stops",
			election.LeaseDuration.Duration, election.RenewDeadline.Duration, controller.DrainTimeout))
	}
	if election.LeaseDuration.Duration < election.RenewDeadline.Duration+election.RetryPeriod.Duration {
		errs = append(errs, fmt.Errorf(
			"--leader-elect-lease-duration=%v must be at least --leader-elect-renew-deadline=%v plus --leader-elect-retry-period=%v",
			election.LeaseDuration.Duration, election.RenewDeadline.Duration, election.RetryPeriod.Duration))
	}
	if election.ResourceLock != "leases" {
		errs = append(errs, fmt.Errorf("--leader-elect-resource-lock=%q must be leases", election.ResourceLock))
	}
	return errs
}

// ApplyComponents applies --feature-gates and --emulated-version. It must precede everything that reads a feature.
func (o *Options) ApplyComponents() error {
	if err := o.Server.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("setting feature gates: %w", err)
	}
	return nil
}

// ApplyTo configures the server except for its storage, which must be configured before. The options must be complete
// and valid. newInitializer returns the initializers of admission plugins, once the connections to the cluster and to
// the server itself are configured.
func (o *Options) ApplyTo(
	ctx context.Context, config *apiserver.Config, newInitializer func(*genericapiserver.RecommendedConfig) (admission.PluginInitializer, error),
) error {
	if err := o.Server.ApplyTo(&config.Generic.Config); err != nil {
		return fmt.Errorf("applying the generic options: %w", err)
	}
	config.Validation.AllowInsecureURLs = o.Git.AllowInsecure
	config.Validation.ServerNamespace = o.Namespace
	// The clients of the server use the provider, so it comes first.
	if err := o.Tracing.applyTo(ctx, &config.Generic.Config); err != nil {
		return err
	}
	recommended := *o.Recommended
	recommended.Etcd = nil
	recommended.ExtraAdmissionInitializers = func(generic *genericapiserver.RecommendedConfig) ([]admission.PluginInitializer, error) {
		initializer, err := newInitializer(generic)
		if err != nil {
			return nil, err
		}
		return []admission.PluginInitializer{initializer}, nil
	}
	unserved, err := omitUnserved(ctx, &recommended)
	if err != nil {
		return err
	}
	o.Unserved = unserved
	if err := recommended.ApplyTo(config.Generic); err != nil {
		return fmt.Errorf("applying the options of the API server: %w", err)
	}
	o.Tracing.wrapLoopback(&config.Generic.Config)
	return applyAudit(recommended.Audit, &config.Generic.Config)
}
