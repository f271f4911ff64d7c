// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer fills the internal kinds with random content that survives a trip through every version: where a version
// has a default, an empty field would not come back empty.
package fuzzer

import (
	"sigs.k8s.io/randfill"

	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// Funcs returns the functions that fill kinds with defaults.
func Funcs(_ runtimeserializer.CodecFactory) []any {
	return []any{fillGitRepoConfigSpec, fillGitDestinationSpec, fillNamespacedRules, fillCommitSigning}
}

func fillGitRepoConfigSpec(spec *configbutler.GitRepoConfigSpec, c randfill.Continue) {
	c.FillNoCustom(spec)
	if spec.AccessPolicy == nil {
		spec.AccessPolicy = &configbutler.AccessPolicy{}
		c.Fill(spec.AccessPolicy)
	}
}

func fillGitDestinationSpec(spec *configbutler.GitDestinationSpec, c randfill.Continue) {
	c.FillNoCustom(spec)
	if spec.AccessPolicy == nil {
		spec.AccessPolicy = &configbutler.AccessPolicy{}
		c.Fill(spec.AccessPolicy)
	}
	spec.Granularity = oneOf(c, configbutler.GranularityPerAuthor, configbutler.GranularityPerChange, configbutler.GranularityBatch)
	spec.Secrets = oneOf(c, configbutler.SecretsEncrypt, configbutler.SecretsAsIs, configbutler.SecretsOmit)
	spec.Prune = oneOf(c, configbutler.PruneAlways, configbutler.PruneNever)
}

func fillNamespacedRules(rules *configbutler.NamespacedRules, c randfill.Continue) {
	c.FillNoCustom(rules)
	rules.Mode = oneOf(c, configbutler.AccessModeSameNamespace, configbutler.AccessModeAllNamespaces, configbutler.AccessModeFromSelector)
}

func fillCommitSigning(signing *configbutler.CommitSigning, c randfill.Continue) {
	c.FillNoCustom(signing)
	signing.Format = oneOf(c, configbutler.SigningFormatSSH, configbutler.SigningFormatOpenPGP)
}

func oneOf[T any](c randfill.Continue, choices ...T) T {
	return choices[c.Intn(len(choices))]
}
