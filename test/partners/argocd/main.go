// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The command argocd compares a folder with a cluster, and applies it, as an Application of Argo CD with ServerSideApply does: with the
// library that Argo CD itself uses. It prints a line for each manifest: Synced, OutOfSync or Missing, and what differs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/engine"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/go-logr/logr"
	"github.com/gobwas/glob"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// tracking is the annotation in which Argo CD writes of which Application an object is.
	tracking = "argocd.argoproj.io/tracking-id"
	// manager is the field manager of Argo CD.
	manager = "argocd-controller"
	// retries is the number in syncPolicy.retry of the Application: an object can be applied before discovery has its new type.
	retries = 5
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the cluster")
	folder := flag.String("folder", "", "the folder with the manifests")
	exclude := flag.String("exclude", "", "directory.exclude of the Application")
	application := flag.String("application", "", "the name of the Application; empty if objects are not tracked")
	apply := flag.Bool("sync", false, "apply the manifests first")
	flag.Parse()
	if err := run(context.Background(), *kubeconfig, *folder, *exclude, *application, *apply); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, folder, exclude, application string, apply bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 200, 400 // As fast as the test needs it.
	targets, err := read(folder, exclude)
	if err != nil {
		return err
	}
	if application != "" {
		for _, each := range targets {
			track(each, application)
		}
	}
	// Live objects are needed with all their fields.
	live := cache.NewClusterCache(config, cache.SetLogr(logr.Discard()),
		cache.SetPopulateResourceInfoHandler(func(object *unstructured.Unstructured, _ bool) (any, bool) {
			return object.GetAnnotations()[tracking], true
		}))
	if apply {
		err := synchronize(ctx, engine.NewEngine(config, live), targets, application)
		for retry := 0; err != nil && retry < retries; retry++ {
			err = synchronize(ctx, engine.NewEngine(config, live), targets, application)
		}
		if err != nil {
			return err
		}
	}
	if err := live.EnsureSynced(); err != nil {
		return err
	}
	return compare(live, targets)
}

// read returns the manifests below a folder that the glob does not exclude. As in Argo CD, * in the glob also matches slashes.
func read(folder, exclude string) (manifests []*unstructured.Unstructured, err error) {
	excluded, err := glob.Compile(exclude)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		if err != nil || exclude != "" && excluded.Match(relative) {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		objects, err := kube.SplitYAML(content)
		manifests = append(manifests, objects...)
		return err
	})
	return manifests, err
}

// track marks an object as one of an Application.
func track(object *unstructured.Unstructured, application string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	kind := object.GroupVersionKind()
	annotations[tracking] = fmt.Sprintf("%s:%s/%s:%s/%s", application, kind.Group, kind.Kind, object.GetNamespace(), object.GetName())
	object.SetAnnotations(annotations)
}

// synchronize applies the manifests.
func synchronize(ctx context.Context, with engine.GitOpsEngine, targets []*unstructured.Unstructured, application string) error {
	stop, err := with.Run()
	if err != nil {
		return err
	}
	defer stop()
	isManaged := func(r *cache.Resource) bool {
		id, _ := r.Info.(string)
		return strings.HasPrefix(id, application+":")
	}
	results, err := with.Sync(ctx, targets, isManaged, "revision", "default",
		sync.WithServerSideApply(true), sync.WithServerSideApplyManager(manager), sync.WithPrune(true), sync.WithLogr(logr.Discard()))
	for _, each := range results {
		if each.Status != "Synced" && each.Status != "Pruned" {
			err = errors.Join(err, fmt.Errorf("%s: %s: %s", each.ResourceKey.String(), each.Status, each.Message))
		}
	}
	return err
}

// compare prints how the manifests differ from the live objects.
func compare(live cache.ClusterCache, targets []*unstructured.Unstructured) error {
	managed, err := live.GetManagedLiveObjs(targets, func(*cache.Resource) bool { return false })
	if err != nil {
		return err
	}
	paired := sync.Reconcile(targets, managed, "default", live)
	// What an Application with ServerSideApply=true selects.
	found, err := diff.DiffArray(paired.Target, paired.Live, diff.WithStructuredMergeDiff(true), diff.WithGVKParser(live.GetGVKParser()),
		diff.WithManager(manager), diff.WithLogr(logr.Discard()))
	if err != nil {
		return err
	}
	for i, each := range found.Diffs {
		state := "Synced"
		switch {
		case paired.Live[i] == nil:
			state = "Missing"
		case each.Modified:
			state = "OutOfSync"
		}
		key := kube.GetResourceKey(paired.Target[i])
		fmt.Printf("%s %s\n", state, key.String())
		if state == "OutOfSync" {
			fmt.Printf("  live      %s\n  predicted %s\n", each.NormalizedLive, each.PredictedLive)
		}
	}
	return nil
}
