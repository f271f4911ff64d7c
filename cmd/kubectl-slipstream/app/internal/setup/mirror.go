// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	apply "github.com/configbutler/slipstream/pkg/generated/applyconfiguration/configbutler/v1alpha1"
)

const mirrorExample = `  # Print what mirrors the namespace shop, to review it or to keep it in files
  kubectl slipstream mirror -n shop --to https://git.example.com/production.git --secret shop-git

  # Mirror Deployments and Services only, and apply it
  kubectl slipstream mirror -n shop --to https://git.example.com/production.git --secret shop-git \
    --types deployments.apps,services --apply`

// mirror is the command mirror.
type mirror struct {
	creator
	name, url, branch, folder, secret string
	types                             []string
}

func newMirror(streams genericiooptions.IOStreams, config genericclioptions.RESTClientGetter) *cobra.Command {
	m := &mirror{creator: newCreator(streams, config)}
	command := &cobra.Command{
		Use:   "mirror --to URL",
		Short: "Create the objects that mirror a namespace to Git: print them, or create them with --apply",
		Long: "Print a GitRepoConfig, a GitDestination and a WatchRule that mirror objects of the namespace to a folder of a Git repository.\n" +
			"With --apply they are applied with your rights: the objects that the rule selects have to be readable for you.",
		Example: mirrorExample,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return m.run(command.Context(), command.Flags().Changed("folder"))
		},
	}
	flags := command.Flags()
	flags.StringVar(&m.url, "to", "", "URL of the repository: https://host/path, ssh://user@host/path or user@host:path.")
	flags.StringVar(&m.name, "name", "", "Name of the objects. Defaults to the last part of the URL.")
	flags.StringVar(&m.branch, "branch", "main", "Branch of the repository. It is created if it is missing.")
	flags.StringVar(&m.folder, "folder", "", "Folder of the branch, which is written by this mirror only. Defaults to the name of the namespace; empty is the root.")
	flags.StringVar(&m.secret, "secret", "", "Secret of the namespace with the credentials. Without one, access is anonymous, and SSH is not possible.")
	flags.StringSliceVar(&m.types, "types", nil,
		"Types to mirror, such as deployments.apps,services, or *. Defaults to the types with desired state; not pods, events and the like.")
	m.addFlags(command)
	return command
}

func (m *mirror) run(ctx context.Context, folderGiven bool) error {
	namespace, err := m.namespace()
	if err != nil {
		return err
	}
	if err := m.complete(namespace, folderGiven); err != nil {
		return err
	}
	m.rename = "give the objects another name with --name, and the mirror another folder with --folder"
	m.needs = append(m.needs, m.needsTypes("--types", m.types))
	if m.secret != "" {
		m.needs = append(m.needs, needsSecret("--secret", namespace, m.secret, m.keys()))
	}
	next := fmt.Sprintf("kubectl wait gitrepoconfig/%[1]s gitdestination/%[1]s watchrule/%[1]s -n %[2]s --for=condition=Ready", m.name, namespace)
	return m.create(ctx, next, m.repository(namespace), m.destination(namespace), m.rule(namespace))
}

// complete sets what the flags leave out.
func (m *mirror) complete(namespace string, folderGiven bool) error {
	if m.url == "" {
		return errors.New("--to is missing: give the URL of the repository")
	}
	if m.secret == "" && isSSH(m.url) {
		return errors.New("--secret is missing: access by SSH needs a Secret with ssh-privatekey and known_hosts")
	}
	if !folderGiven {
		m.folder = namespace
	}
	if m.name != "" {
		return nil
	}
	if m.name = nameOf(m.url); m.name == "" {
		return errors.New("--name is missing: the last part of --to cannot be the name of an object")
	}
	return nil
}

// keys returns the arguments of kubectl that set the keys of the Secret.
func (m *mirror) keys() string {
	if isSSH(m.url) {
		return "--from-file=ssh-privatekey=KEYFILE --from-file=known_hosts=KNOWN_HOSTS"
	}
	return "--from-literal=username=NAME --from-literal=password=TOKEN"
}

func (m *mirror) repository(namespace string) manifest {
	spec := apply.GitRepoConfigSpec().WithRepoURL(m.url).WithAllowedBranches(m.branch)
	if m.secret != "" {
		spec.WithSecretRef(apply.SecretReference().WithName(m.secret))
	}
	return manifest{resource: "gitrepoconfigs", configuration: apply.GitRepoConfig(m.name, namespace).WithSpec(spec), flags: map[string]string{
		"metadata.name": "--name", "metadata.namespace": "--namespace", "spec.repoUrl": "--to", "spec.allowedBranches": "--branch",
		"spec.secretRef": "--secret",
	}}
}

func (m *mirror) destination(namespace string) manifest {
	spec := apply.GitDestinationSpec().WithRepoRef(apply.ObjectReference().WithName(m.name)).WithBranch(m.branch)
	if m.folder != "" {
		spec.WithBaseFolder(m.folder)
	}
	return manifest{resource: "gitdestinations", configuration: apply.GitDestination(m.name, namespace).WithSpec(spec), flags: map[string]string{
		"metadata.name": "--name", "spec.branch": "--branch", "spec.baseFolder": "--folder",
	}}
}

func (m *mirror) rule(namespace string) manifest {
	rule := apply.ResourceRule().WithName("desired-state")
	if len(m.types) > 0 {
		rule = apply.ResourceRule().WithName("types").WithResources(m.types...)
	}
	spec := apply.WatchRuleSpec().WithDestinationRef(apply.ObjectReference().WithName(m.name)).WithRules(rule)
	return manifest{resource: "watchrules", configuration: apply.WatchRule(m.name, namespace).WithSpec(spec), flags: map[string]string{
		"metadata.name": "--name", "spec.rules": "--types",
	}}
}

// isSSH reports whether a URL is one of SSH, in one of its two forms.
func isSSH(url string) bool {
	return strings.HasPrefix(url, "ssh://") || !strings.Contains(url, "://") && strings.Contains(url, "@")
}

var notInNames = regexp.MustCompile("[^a-z0-9]+")

// nameOf returns the last part of a URL as the name of an object, or "" if it has none.
func nameOf(url string) string {
	url = strings.TrimSuffix(strings.TrimRight(url, "/"), ".git")
	last := url[strings.LastIndexAny(url, "/:")+1:]
	const longest = 63
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(last), "-"), "-")
	return strings.TrimRight(name[:min(len(name), longest)], "-")
}
