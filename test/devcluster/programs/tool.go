// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/configbutler/slipstream/test/devcluster/filelock"
)

// Tool is a command for development clusters, tests and checks that a Go module below hack pins.
type Tool struct {
	// module is the folder of the module in hack.
	module string
	// command is the package of the command.
	command string
	// source is the module of the command, if the command is not at its root; optional.
	source string
	// tags are build tags, separated by commas; optional.
	tags string
	// cgo compiles the command with cgo, which needs a C compiler, also where CGO_ENABLED is 0.
	cgo bool
}

// The tools.
var (
	// Sops decrypts files that the server has encrypted.
	Sops = Tool{module: "sops", command: "github.com/getsops/sops/v3/cmd/sops"}
	// Helm renders and installs the chart. Helm3 is the previous major version.
	Helm  = Tool{module: "helm", command: "helm.sh/helm/v4/cmd/helm"}
	Helm3 = Tool{module: "helm3", command: "helm.sh/helm/v3/cmd/helm"}
	// OAuth2Proxy logs users in at the page of a team.
	OAuth2Proxy = Tool{module: "oauth2proxy", command: "github.com/oauth2-proxy/oauth2-proxy/v7"}
	// Kwok simulates the kubelets of nodes.
	Kwok = Tool{module: "kwok", command: "sigs.k8s.io/kwok/cmd/kwok"}
	// Gitea is a Git host. Its SQLite is written in C.
	Gitea = Tool{module: "gitea", command: "code.gitea.io/gitea", tags: "sqlite,sqlite_unlock_notify", cgo: true}
	// Cosign signs releases and verifies them.
	Cosign = Tool{module: "cosign", command: "github.com/sigstore/cosign/v3/cmd/cosign"}
	// Hugo builds the site of the documentation.
	Hugo = Tool{module: "hugo", command: "github.com/gohugoio/hugo"}
	// Crane serves a registry.
	Crane = Tool{module: "crane", command: "github.com/google/go-containerregistry/cmd/crane"}
	// SourceController and KustomizeController are the parts of Flux that fetch repositories and apply manifests.
	SourceController    = Tool{module: "sourcecontroller", command: "github.com/fluxcd/source-controller"}
	KustomizeController = Tool{module: "kustomizecontroller", command: "github.com/fluxcd/kustomize-controller"}
	// GitOpsReverser writes changes of a cluster's objects to Git, as the server does.
	GitOpsReverser = Tool{module: "gitopsreverser", command: "github.com/ConfigButler/gitops-reverser/cmd", source: "github.com/ConfigButler/gitops-reverser"}
)

// Build returns the path of the command in the version that the module pins. It builds the command first if it is not in the cache, which
// takes minutes. The folder root is that of the repository. Several processes can call it concurrently, like the function Build. The cache
// is slipstream/TOOL below os.UserCacheDir.
func (t Tool) Build(ctx context.Context, root string) (string, error) {
	module := filepath.Join(root, "hack", t.module)
	key, err := pinsKey(module)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("failed to find the user's cache: %w", err)
	}
	folder := filepath.Join(cache, "slipstream", t.module, key)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("failed to create the folder of %s: %w", t.module, err)
	}
	lock, err := filelock.Acquire(ctx, folder+".lock")
	if err != nil {
		return "", err
	}
	program := filepath.Join(folder, t.module)
	return program, errors.Join(t.buildOnce(ctx, module, program), lock.Release())
}

// Files returns the folder with the files of the command's module, in the version that is built.
func (t Tool) Files(ctx context.Context, root string) (string, error) {
	return ModuleFolder(ctx, filepath.Join(root, "hack", t.module), cmp.Or(t.source, t.command))
}

// buildOnce builds the program, unless it exists. The caller holds the folder's lock.
func (t Tool) buildOnce(ctx context.Context, module, program string) error {
	if exists(program) {
		return nil
	}
	return buildWhole(ctx, module, program, t.command, building{linkerFlags: "-s -w", tags: t.tags, cgo: t.cgo})
}
