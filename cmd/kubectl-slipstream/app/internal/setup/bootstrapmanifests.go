// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// followed is a mirror that another cluster follows.
type followed struct {
	by          tool
	destination v1alpha1.ObjectReference
	// name and namespace are those of the printed objects.
	name, namespace string
	interval        time.Duration
	url             string
	branch          string
	folder          string
	credentials     bool
	encrypted       bool
	recipients      []string
	// clusterRules reports whether ClusterWatchRules may select objects for the mirror.
	clusterRules bool
}

// object is a manifest of another tool.
type object = map[string]any

// manifests returns what the tool needs.
func (f *followed) manifests() []object {
	if f.by == argoCD {
		return []object{f.application()}
	}
	return []object{f.gitRepository(), f.kustomization()}
}

// appliedEach is the minimum interval at which Flux applies everything again.
const appliedEach = 10 * time.Minute

func (f *followed) gitRepository() object {
	spec := object{"interval": duration(f.interval), "url": f.withScheme(), "ref": object{"branch": f.branch}, "ignore": f.ignoredFiles()}
	if f.credentials {
		spec["secretRef"] = object{"name": f.gitSecret()}
	}
	return f.manifest("source.toolkit.fluxcd.io/v1", "GitRepository", spec)
}

func (f *followed) kustomization() object {
	spec := object{
		"interval": duration(max(f.interval, appliedEach)), "path": "./" + f.folder, "prune": true,
		"sourceRef": object{"kind": "GitRepository", "name": f.name},
	}
	if f.encrypted {
		spec["decryption"] = object{"provider": "sops", "secretRef": object{"name": f.ageSecret()}}
	}
	return f.manifest("kustomize.toolkit.fluxcd.io/v1", "Kustomization", spec)
}

// application returns the Application of Argo CD.
func (f *followed) application() object {
	return f.manifest("argoproj.io/v1alpha1", "Application", object{
		"project": "default",
		"source": object{
			"repoURL": f.url, "targetRevision": f.branch, "path": path.Clean(f.folder),
			"directory": object{"recurse": true, "exclude": f.excludedFiles()},
		},
		// The cluster that Argo CD runs in.
		"destination": object{"server": "https://kubernetes.default.svc"},
		"syncPolicy": object{
			"automated": object{"prune": true, "selfHeal": true}, "syncOptions": []any{"ServerSideApply=true"},
			// An object can be applied before discovery has its new type.
			"retry": object{"limit": int64(5)},
		},
	})
}

func (f *followed) manifest(apiVersion, kind string, spec object) object {
	return object{
		"apiVersion": apiVersion, "kind": kind, "metadata": object{"name": f.name, "namespace": f.namespace}, "spec": spec,
	}
}

// duration returns a duration as users write it: 1m instead of 1m0s.
func duration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
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

// ownFolders are the folders of a mirror whose files must not be applied to another cluster: the owner's marker, the objects by which
// Slipstream mirrors this cluster, and objects that each cluster has of its own.
var ownFolders = []string{
	".configbutler", v1alpha1.GroupName, "certificates.k8s.io", "coordination.k8s.io", "events.k8s.io", "internal.apiserver.k8s.io",
	"apps/*/controllerrevisions", "core/v1/events", "core/v1/nodes", "resource.k8s.io/*/resourceslices",
	"storage.k8s.io/*/csinodes", "storage.k8s.io/*/csistoragecapacities", "storage.k8s.io/*/volumeattachments",
}

// ownNamespaces returns patterns of the namespaces that each cluster has of its own, such as that with the authorities of its API server
// (extension-apiserver-authentication).
func (f *followed) ownNamespaces() []string {
	namespaces := []string{"kube-*", "slipstream-system"}
	if f.namespace != "slipstream-system" {
		namespaces = append(namespaces, f.namespace)
	}
	return namespaces
}

// ownFiles returns patterns of other files of this kind: the definitions and the rights of Slipstream and of the tool. Applied and later
// deleted here, they would end the tool there.
func (f *followed) ownFiles() []string {
	const definitions, roles = "apiextensions.k8s.io/*/customresourcedefinitions/", "rbac.authorization.k8s.io/*/clusterrole*/"
	files := []string{roles + "slipstream-*.yaml"}
	if f.by == argoCD {
		return append(files, definitions+"*.argoproj.io.yaml", roles+"argocd-*.yaml")
	}
	return append(files, definitions+"*.toolkit.fluxcd.io.yaml", roles+"*-flux-system.yaml")
}

// ignoredFiles returns what Flux does not fetch, as patterns of gitignore below the root of the repository.
func (f *followed) ignoredFiles() string {
	root := "/"
	if folder := path.Clean(f.folder); folder != "." {
		root += strings.ReplaceAll(folder, "[", `\[`) + "/"
	}
	var lines strings.Builder
	for _, folder := range ownFolders {
		lines.WriteString(root + folder + "/\n")
	}
	for _, file := range f.ownFiles() {
		lines.WriteString(root + file + "\n")
	}
	for _, namespace := range f.ownNamespaces() {
		lines.WriteString(root + "core/v1/namespaces/" + namespace + ".yaml\n" + root + "*/*/*/" + namespace + "/\n")
	}
	return lines.String()
}

// excludedFiles returns what Argo CD does not apply, as a glob below the folder in which * also matches slashes. Encrypted Secrets are among
// it, since Argo CD decrypts nothing.
func (f *followed) excludedFiles() string {
	var globs []string
	for _, folder := range ownFolders {
		globs = append(globs, folder+"/*")
	}
	globs = append(globs, f.ownFiles()...)
	for _, namespace := range f.ownNamespaces() {
		globs = append(globs, "core/v1/namespaces/"+namespace+".yaml", "*/"+namespace+"/*")
	}
	if f.encrypted {
		globs = append(globs, "core/v1/secrets/*")
	}
	return "{" + strings.Join(globs, ",") + "}"
}
