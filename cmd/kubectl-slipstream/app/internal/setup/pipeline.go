// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	apply "github.com/configbutler/slipstream/pkg/generated/applyconfiguration/configbutler/v1alpha1"
)

const pipelineExample = `  # Print a pipeline that sends all definitions, and the Deployments and Services, as CloudEvents
  kubectl slipstream pipeline inventory --to https://inventory.example.com --types deployments.apps,services

  # Apply one for a receiver with a token, which is in the Secret assistant of the namespace tools
  kubectl slipstream pipeline assistant --to https://assistant.example.com --format DotAI --secret tools/assistant --apply`

// pipeline is the command pipeline.
type pipeline struct {
	creator
	url, format, secret string
	types               []string
}

func newPipeline(streams genericiooptions.IOStreams, config genericclioptions.RESTClientGetter) *cobra.Command {
	p := &pipeline{creator: newCreator(streams, config)}
	command := &cobra.Command{
		Use:     "pipeline NAME --to URL",
		Short:   "Create a SyncPipeline from the cluster to another system: print it, or create it with --apply",
		Example: pipelineExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(command *cobra.Command, args []string) error { return p.run(command.Context(), args[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&p.url, "to", "", "URL of the receiver, http or https.")
	flags.StringVar(&p.format, "format", string(v1alpha1.PipelineFormatCloudEvents), "API of the receiver: CloudEvents, ClusterWhisperer or DotAI.")
	flags.StringVar(&p.secret, "secret", "", "Secret with the credentials of the receiver, as NAMESPACE/NAME. Without one, none are sent.")
	flags.StringSliceVar(&p.types, "types", nil, "Types whose objects are sent, such as deployments.apps,services. Defaults to all but events and the like.")
	p.addFlags(command)
	return command
}

func (p *pipeline) run(ctx context.Context, name string) error {
	if p.url == "" {
		return errors.New("--to is missing: give the URL of the receiver")
	}
	sink := apply.HTTPSink().WithURL(p.url).WithFormat(formatOf(p.format))
	if p.secret != "" {
		namespace, secret, qualified := strings.Cut(p.secret, "/")
		if !qualified {
			return fmt.Errorf("--secret is %q: write NAMESPACE/NAME", p.secret)
		}
		p.needs = append(p.needs, needsSecret("--secret", namespace, secret, "--from-literal=token=TOKEN"))
		sink.WithSecretRef(apply.NamespacedObjectReference().WithNamespace(namespace).WithName(secret))
	}
	spec := apply.SyncPipelineSpec().WithSinks(apply.PipelineSink().WithName(name).WithHTTP(sink))
	p.needs = append(p.needs, p.needsTypes("--types", p.types))
	if len(p.types) > 0 {
		spec.WithInstances(apply.InstanceSource().WithResources(p.types...))
	}
	next := fmt.Sprintf("kubectl wait syncpipeline/%s --for=condition=Ready", name)
	return p.create(ctx, next, manifest{resource: "syncpipelines", configuration: apply.SyncPipeline(name).WithSpec(spec), flags: map[string]string{
		"metadata.name": "NAME", "spec.sinks[0].name": "NAME", "spec.instances": "--types", "spec.sinks[0].http.url": "--to",
		"spec.sinks[0].http.format": "--format", "spec.sinks[0].http.secretRef": "--secret",
	}})
}

// formatOf returns a format in the case in which the API writes it.
func formatOf(text string) v1alpha1.PipelineFormat {
	for _, known := range []v1alpha1.PipelineFormat{
		v1alpha1.PipelineFormatCloudEvents, v1alpha1.PipelineFormatClusterWhisperer, v1alpha1.PipelineFormatDotAI,
	} {
		if strings.EqualFold(text, string(known)) {
			return known
		}
	}
	return v1alpha1.PipelineFormat(text)
}
