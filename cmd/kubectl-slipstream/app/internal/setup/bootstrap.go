// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

const bootstrapExample = `  # Print what makes Flux in another cluster follow the mirror of the GitDestination production
  kubectl slipstream bootstrap flux --destination shop/production

  # Have Argo CD of another cluster follow it
  kubectl slipstream bootstrap argocd --destination shop/production | kubectl --context=other apply -f -`

const (
	// fluxNamespace is the namespace of Flux, and the name of the objects with which Flux follows its own repository.
	fluxNamespace = "flux-system"
	// maxName is the length of the longest name of a Kustomization: Flux uses it in a label.
	maxName = 63
)

// bootstrap is the command bootstrap.
type bootstrap struct {
	genericiooptions.IOStreams
	config      genericclioptions.RESTClientGetter
	print       *genericclioptions.PrintFlags
	destination string
	name        string
}

func newBootstrap(streams genericiooptions.IOStreams, config genericclioptions.RESTClientGetter) *cobra.Command {
	b := &bootstrap{IOStreams: streams, config: config, print: genericclioptions.NewPrintFlags("").WithDefaultOutput("yaml")}
	command := &cobra.Command{
		Use:   "bootstrap (flux | argocd) --destination [NAMESPACE/]NAME",
		Short: "Print the manifests that make Flux or Argo CD of another cluster follow a mirror",
		Long: "Print the manifests that make Flux or Argo CD of another cluster follow the folder of a GitDestination: a GitRepository and a\n" +
			"Kustomization, or an Application. They also delete in that cluster what is deleted in this one, and who can push to the branch can\n" +
			"then create any object there. Do not apply them to the mirrored cluster itself.",
		Example:   bootstrapExample,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"flux", "argocd"},
		RunE:      func(command *cobra.Command, args []string) error { return b.run(command.Context(), args[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&b.destination, "destination", "", "The GitDestination, as [NAMESPACE/]NAME.")
	flags.StringVar(&b.name, "name", "", "Name of the printed objects. Defaults to namespace and name of the GitDestination, as in shop-production.")
	b.print.AddFlags(command)
	return command
}

func (b *bootstrap) run(ctx context.Context, tool string) error {
	if b.destination == "" {
		return fmt.Errorf("--destination is missing: give the name of a GitDestination")
	}
	printer, err := b.print.ToPrinter()
	if err != nil {
		return err
	}
	mirror, err := b.read(ctx)
	if err != nil {
		return err
	}
	objects := mirror.flux()
	if tool == "argocd" {
		objects = mirror.argoCD()
	}
	for _, object := range objects {
		if err := printer.PrintObj(&unstructured.Unstructured{Object: object}, b.Out); err != nil {
			return err
		}
	}
	mirror.notes(b.ErrOut, tool)
	return nil
}

// followed is a mirror that another cluster follows.
type followed struct {
	name        string
	url         string
	branch      string
	folder      string
	credentials bool
	encrypted   bool
}

// read reads the destination and its repository.
func (b *bootstrap) read(ctx context.Context) (*followed, error) {
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
	api, err := cli.Connect(b.config)
	if err != nil {
		return nil, err
	}
	destination, err := api.GitDestinations(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	f := &followed{
		name: b.name, branch: destination.Spec.Branch, folder: destination.Spec.BaseFolder,
		encrypted: destination.Spec.Secrets == v1alpha1.SecretsEncrypt,
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
		return nil, err
	}
	f.url, f.credentials = repository.Spec.RepoURL, repository.Spec.SecretRef != nil
	return f, nil
}

var scpLike = regexp.MustCompile(`^([^/:]+@[^/:]+):(.*)$`)

// withScheme returns the URL in the form that Flux takes: user@host:path becomes ssh://user@host/path.
func (f *followed) withScheme() string {
	if strings.Contains(f.url, "://") {
		return f.url
	}
	return scpLike.ReplaceAllString(f.url, "ssh://$1/$2")
}

// gitSecret and ageSecret are the Secrets for Flux with the credentials of the repository and with the key pair. Each mirror has its own,
// so that no repository gets the credentials of another one.
func (f *followed) gitSecret() string { return f.name + "-git" }
func (f *followed) ageSecret() string { return f.name + "-age" }

// object is a manifest of another tool.
type object = map[string]any

// flux returns what Flux needs.
func (f *followed) flux() []object {
	metadata := object{"name": f.name, "namespace": fluxNamespace}
	source := object{"interval": "1m", "url": f.withScheme(), "ref": object{"branch": f.branch}}
	if f.credentials {
		source["secretRef"] = object{"name": f.gitSecret()}
	}
	applied := object{
		"interval": "10m", "path": "./" + f.folder, "prune": true, "sourceRef": object{"kind": "GitRepository", "name": f.name},
	}
	if f.encrypted {
		applied["decryption"] = object{"provider": "sops", "secretRef": object{"name": f.ageSecret()}}
	}
	return []object{
		{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": metadata, "spec": source},
		{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": metadata, "spec": applied},
	}
}

// argoCD returns what Argo CD needs. Encrypted Secrets are left out, since Argo CD decrypts nothing.
func (f *followed) argoCD() []object {
	directory := object{"recurse": true}
	if f.encrypted {
		directory["exclude"] = "core/v1/secrets/*"
	}
	return []object{{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": object{"name": f.name, "namespace": "argocd"},
		"spec": object{
			"project": "default",
			"source":  object{"repoURL": f.url, "targetRevision": f.branch, "path": path.Clean(f.folder), "directory": directory},
			// The cluster that Argo CD runs in.
			"destination": object{"server": "https://kubernetes.default.svc"},
			"syncPolicy":  object{"automated": object{"prune": true, "selfHeal": true}, "syncOptions": []any{"ServerSideApply=true"}},
		},
	}}
}

// notes prints what else has to be done.
func (f *followed) notes(out io.Writer, tool string) {
	note := func(format string, args ...any) {
		_, _ = fmt.Fprintln(out, printable.Line(fmt.Sprintf(format, args...))) // Nothing depends on it.
	}
	note("Who can push to the branch %s of %s can then create any object in that cluster: restrict it with %s", f.branch, f.url, restriction(tool))
	if tool == "argocd" {
		f.argoNotes(note)
		return
	}
	if url := f.withScheme(); url != f.url {
		note("Flux takes no %s, so check that %s is the same repository: its path begins at the root of the server", f.url, url)
	}
	if f.credentials {
		note("Create the Secret %s in %s, with credentials that may read it: flux create secret git", f.gitSecret(), fluxNamespace)
	}
	if f.encrypted {
		note("Create the Secret %s in %s, with the private key as age.agekey", f.ageSecret(), fluxNamespace)
	}
}

// restriction returns what restricts the objects that a tool applies.
func restriction(tool string) string {
	if tool == "argocd" {
		return "an AppProject"
	}
	return "spec.serviceAccountName of the Kustomization"
}

// argoNotes prints what else has to be done for Argo CD.
func (f *followed) argoNotes(note func(format string, args ...any)) {
	if f.credentials {
		note("Give Argo CD credentials that may read it: argocd repo add")
	}
	if f.encrypted {
		note("Secrets are left out: they are encrypted, and Argo CD needs a plugin to decrypt them, such as KSOPS")
	}
}
