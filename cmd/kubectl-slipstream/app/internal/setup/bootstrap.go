// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	client "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
)

const bootstrapExample = `  # Print what makes Flux in another cluster follow the mirror of the GitDestination production
  kubectl slipstream bootstrap flux --destination shop/production

  # Have Argo CD of another cluster follow it
  kubectl slipstream bootstrap argocd --destination shop/production | kubectl --context=other apply -f -`

// tool is what applies a mirror to a cluster.
type tool string

// The tools.
const (
	flux   tool = "flux"
	argoCD tool = "argocd"
)

const (
	// fluxNamespace is the namespace of Flux, and the name of the objects with which Flux follows its own repository.
	fluxNamespace = "flux-system"
	argoNamespace = "argocd"
	// maxName is the length of the longest name of a Kustomization: Flux uses it in a label.
	maxName = 63
	// defaultInterval is the interval at which Flux looks for commits.
	defaultInterval = time.Minute
)

// bootstrap is the command bootstrap.
type bootstrap struct {
	genericiooptions.IOStreams
	config      genericclioptions.RESTClientGetter
	print       *genericclioptions.PrintFlags
	destination string
	name        string
	namespace   string
	interval    time.Duration
}

func newBootstrap(streams genericiooptions.IOStreams, config genericclioptions.RESTClientGetter) *cobra.Command {
	b := &bootstrap{IOStreams: streams, config: config, print: genericclioptions.NewPrintFlags("").WithDefaultOutput("yaml")}
	command := &cobra.Command{
		Use:   "bootstrap (flux | argocd) --destination [NAMESPACE/]NAME",
		Short: "Print the manifests that make Flux or Argo CD of another cluster follow a mirror",
		Long: "Print the manifests that make Flux or Argo CD of another cluster follow the folder of a GitDestination: a GitRepository and a\n" +
			"Kustomization, or an Application. Comments in them list the Secrets that they need. They leave out what belongs to this cluster\n" +
			"alone, such as its nodes. They also delete in that cluster what is deleted in this one, and who can push to the branch can then\n" +
			"create any object there. Do not apply them to the mirrored cluster itself.",
		Example:   bootstrapExample,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{string(flux), string(argoCD)},
		RunE:      func(command *cobra.Command, args []string) error { return b.run(command.Context(), tool(args[0])) },
	}
	flags := command.Flags()
	flags.StringVar(&b.destination, "destination", "", "The GitDestination, as [NAMESPACE/]NAME.")
	flags.StringVar(&b.name, "name", "", "Name of the printed objects. Defaults to namespace and name of the GitDestination, as in shop-production.")
	flags.StringVar(&b.namespace, "tool-namespace", "", "Namespace of the printed objects. Defaults to flux-system or argocd.")
	cli.DurationVar(flags, &b.interval, "interval", defaultInterval, "Interval at which Flux looks for commits. That of Argo CD is in its own settings.")
	b.print.AddFlags(command)
	return command
}

func (b *bootstrap) run(ctx context.Context, by tool) error {
	if err := b.complete(by); err != nil {
		return err
	}
	printer, err := b.print.ToPrinter()
	if err != nil {
		return err
	}
	api, err := cli.Connect(b.config)
	if err != nil {
		return err
	}
	mirror, err := b.read(ctx, api, by)
	if err != nil {
		return err
	}
	var manifests bytes.Buffer
	for _, object := range mirror.manifests() {
		if err := printer.PrintObj(&unstructured.Unstructured{Object: object}, &manifests); err != nil {
			return err
		}
	}
	// Only YAML has comments.
	if *b.print.OutputFormat == "yaml" {
		writeLines(b.Out, "# ", mirror.needs())
	} else {
		writeLines(b.ErrOut, "", mirror.needs())
	}
	if _, err := io.Copy(b.Out, &manifests); err != nil {
		return err
	}
	writeLines(b.ErrOut, "", mirror.warnings(ctx, api))
	return nil
}

// complete validates the flags and sets defaults.
func (b *bootstrap) complete(by tool) error {
	if b.destination == "" {
		return fmt.Errorf("--destination is missing: give the name of a GitDestination")
	}
	if b.namespace == "" {
		b.namespace = map[tool]string{flux: fluxNamespace, argoCD: argoNamespace}[by]
	}
	if problems := validation.IsDNS1123Label(b.namespace); len(problems) > 0 {
		return fmt.Errorf("--tool-namespace is %q: %s", b.namespace, problems[0])
	}
	switch {
	case b.interval < time.Second:
		return fmt.Errorf("--interval is %s: it is at least 1s", b.interval)
	case by == argoCD && b.interval != defaultInterval:
		return fmt.Errorf("--interval is only for Flux: that of Argo CD is timeout.reconciliation in its ConfigMap argocd-cm")
	}
	return nil
}

// read reads the destination and its repository.
func (b *bootstrap) read(ctx context.Context, api client.ConfigbutlerV1alpha1Interface, by tool) (*followed, error) {
	namespace, _, err := b.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	in, name, err := cache.SplitMetaNamespaceKey(b.destination)
	if err != nil {
		return nil, fmt.Errorf("--destination is %q: write [NAMESPACE/]NAME", b.destination)
	}
	if in != "" {
		namespace = in
	}
	destination, err := api.GitDestinations(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, cli.Sought(err, "--destination", namespace)
	}
	f := &followed{
		by: by, destination: v1alpha1.ObjectReference{Namespace: namespace, Name: name}, name: b.name, namespace: b.namespace, interval: b.interval,
		branch: destination.Spec.Branch, folder: destination.Spec.BaseFolder, encrypted: destination.Spec.Secrets == v1alpha1.SecretsEncrypt,
	}
	if policy := destination.Spec.AccessPolicy; policy != nil {
		f.clusterRules = policy.AllowClusterRules
	}
	if encryption := destination.Spec.Encryption; encryption != nil {
		f.recipients = encryption.AgeRecipients
	}
	if f.name == "" {
		f.name = namespace + "-" + name
	}
	if f.name == fluxNamespace || len(f.name) > maxName {
		return nil, fmt.Errorf("--name: the name %q is that of Flux's own objects, or longer than %d characters: give another one", f.name, maxName)
	}
	if ref := destination.Spec.RepoRef; ref.Namespace != "" {
		namespace = ref.Namespace
	}
	repository, err := api.GitRepoConfigs(namespace).Get(ctx, destination.Spec.RepoRef.Name, metav1.GetOptions{})
	if err != nil {
		return nil, cli.Sought(err, "", namespace) // The destination names it.
	}
	f.url, f.credentials = repository.Spec.RepoURL, repository.Spec.SecretRef != nil
	return f, nil
}
