// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	"k8s.io/klog/v2"

	controllertracing "github.com/configbutler/slipstream/pkg/controller/tracing"
	"github.com/configbutler/slipstream/pkg/kube/buildversion"
)

const (
	// serviceName is the name of the server in traces. Upstream's options would use that of every API server, apiserver.
	serviceName = "slipstream"
	// tracesFlushTimeout bounds how long a shutdown waits for the collector, because a successor waits for the files.
	tracesFlushTimeout = 2 * time.Second
	// tracesErrorInterval is the minimum time between two log lines about the collector.
	tracesErrorInterval = 5 * time.Minute
)

// TracingOptions configure the export of traces. They replace upstream's options of the same flag.
type TracingOptions struct {
	// ConfigFile has a TracingConfiguration of apiserver.config.k8s.io; empty if nothing is exported.
	ConfigFile string
}

func (o *TracingOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.ConfigFile, "tracing-config-file", o.ConfigFile,
		"File with a TracingConfiguration of apiserver.config.k8s.io/v1: the OpenTelemetry collector that receives traces over gRPC, "+
			"and how many traces it receives. Without it there are no traces.")
}

// validate returns all errors. egress is --egress-selector-config-file.
func (o *TracingOptions) validate(egress string) []error {
	if o.ConfigFile == "" {
		return nil
	}
	var errs []error
	if egress != "" {
		errs = append(errs, errors.New("--tracing-config-file cannot be used with --egress-selector-config-file: "+
			"the connection to the collector would not go through the egress selector"))
	}
	if _, err := o.read(); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// read returns the valid configuration in the file.
func (o *TracingOptions) read() (*tracingapi.TracingConfiguration, error) {
	configuration, err := genericoptions.ReadTracingConfiguration(o.ConfigFile)
	if err == nil {
		err = tracingapi.ValidateTracingConfiguration(configuration, utilfeature.DefaultFeatureGate, nil).ToAggregate()
	}
	if err != nil {
		return nil, fmt.Errorf("--tracing-config-file=%s: %w", o.ConfigFile, err)
	}
	return configuration, nil
}

// applyTo sets the provider of the server and of its clients. The collector need not be reachable: spans are exported in the background,
// and dropped while it is not.
func (o *TracingOptions) applyTo(ctx context.Context, config *genericapiserver.Config) error {
	if o.ConfigFile == "" {
		return nil
	}
	configuration, err := o.read()
	if err != nil {
		return err
	}
	provider, err := tracing.NewProvider(ctx, configuration, nil, []resource.Option{resource.WithAttributes(
		attribute.String("service.name", serviceName), attribute.String("service.version", buildversion.WithCommit()),
		attribute.String("service.instance.id", config.APIServerID),
	)})
	if err != nil {
		return fmt.Errorf("--tracing-config-file=%s: %w", o.ConfigFile, err)
	}
	otel.SetErrorHandler(logErrors(tracesErrorInterval))
	config.TracerProvider = boundedProvider{controllertracing.Limit(provider), provider.Shutdown}
	return nil
}

// wrapLoopback has the requests of the server to itself continue the traces of its controllers.
func (o *TracingOptions) wrapLoopback(config *genericapiserver.Config) {
	if o.ConfigFile != "" {
		config.LoopbackClientConfig.Wrap(tracing.WrapperFor(config.TracerProvider))
	}
}

// logErrors logs the errors of the export, at most one in an interval.
func logErrors(interval time.Duration) otel.ErrorHandler {
	limit := rate.Sometimes{Interval: interval}
	return otel.ErrorHandlerFunc(func(err error) {
		limit.Do(func() { klog.Background().Error(err, "Failed to export traces, some are dropped") })
	})
}

// boundedProvider bounds the time of Shutdown.
type boundedProvider struct {
	trace.TracerProvider
	shutdown func(context.Context) error
}

// Shutdown exports the spans that have ended, for at most tracesFlushTimeout.
func (p boundedProvider) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tracesFlushTimeout)
	defer cancel()
	return p.shutdown(ctx)
}
