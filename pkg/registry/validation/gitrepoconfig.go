// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

const (
	minPushInterval = 100 * time.Millisecond
	maxPushInterval = time.Hour
	maxPushCommits  = 10000
	// maxIdentityLength is the length of the name or the email of a committer in bytes. Every commit has both.
	maxIdentityLength = 256
)

// Options configure validation.
type Options struct {
	// AllowInsecureURLs admits repositories at http and file URLs.
	AllowInsecureURLs bool
	// ServerNamespace is the namespace of the server. Only NotificationSinks in it can name namespaces. If it is empty,
	// those in every namespace can.
	ServerNamespace string
}

// ValidateGitRepoConfig validates a new GitRepoConfig.
func ValidateGitRepoConfig(config *configbutler.GitRepoConfig, options Options) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&config.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, metadataPath)
	errs = append(errs, validateGitHost(config.Spec.Host, options, specPath.Child("host"))...)
	return append(errs, validateGitRepoConfigSpec(&config.Spec, options, specPath)...)
}

// ValidateGitRepoConfigUpdate validates an update. An unchanged URL is always allowed, so that objects can still be
// changed and deleted after the server is configured to reject insecure URLs.
func ValidateGitRepoConfigUpdate(config, old *configbutler.GitRepoConfig, options Options) field.ErrorList {
	hostOptions := options
	hostOptions.AllowInsecureURLs = options.AllowInsecureURLs || equality.Semantic.DeepEqual(config.Spec.Host, old.Spec.Host)
	options.AllowInsecureURLs = options.AllowInsecureURLs || config.Spec.RepoURL == old.Spec.RepoURL
	errs := apivalidation.ValidateObjectMetaUpdate(&config.ObjectMeta, &old.ObjectMeta, metadataPath)
	errs = append(errs, validateGitHost(config.Spec.Host, hostOptions, specPath.Child("host"))...)
	return append(errs, validateGitRepoConfigSpec(&config.Spec, options, specPath)...)
}

// ValidateGitRepoConfigStatusUpdate validates a changed status.
func ValidateGitRepoConfigStatusUpdate(config, old *configbutler.GitRepoConfig) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&config.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, validateObserved(config.Status.ObservedGeneration, config.Status.Conditions)...)
}

func validateGitRepoConfigSpec(spec *configbutler.GitRepoConfigSpec, options Options, path *field.Path) field.ErrorList {
	errs := validateRepoURL(spec.RepoURL, options, path.Child("repoUrl"))
	errs = append(errs, validateAllowedBranches(spec.AllowedBranches, path.Child("allowedBranches"))...)
	if spec.SecretRef != nil {
		errs = append(errs, validateSecretReference(*spec.SecretRef, path.Child("secretRef"))...)
	}
	errs = append(errs, validateProvider(spec, options, path)...)
	errs = append(errs, validateProxyReference(spec.ProxySecretRef, path)...)
	if spec.Push != nil {
		errs = append(errs, validatePushPolicy(spec.Push, path.Child("push"))...)
	}
	if spec.Commit != nil {
		errs = append(errs, validateCommitPolicy(spec.Commit, path.Child("commit"))...)
	}
	errs = append(errs, validateWebURLTemplate(spec.WebURLTemplate, path.Child("webURLTemplate"))...)
	return append(errs, validateAccessPolicy(spec.AccessPolicy, path.Child("accessPolicy"))...)
}

// validateProvider checks that a provider has what it needs, and nothing that it ignores.
func validateProvider(spec *configbutler.GitRepoConfigSpec, options Options, path *field.Path) field.ErrorList {
	provider := cmp.Or(spec.Provider, configbutler.ProviderGeneric)
	errs := validateOneOf(provider, path.Child("provider"),
		configbutler.ProviderGeneric, configbutler.ProviderGitHub, configbutler.ProviderAzure)
	if len(errs) > 0 || provider == configbutler.ProviderGeneric {
		return errs
	}
	secure := strings.HasPrefix(spec.RepoURL, "https://") || options.AllowInsecureURLs && strings.HasPrefix(spec.RepoURL, "http://")
	if !secure && spec.RepoURL != "" {
		errs = append(errs, field.Invalid(path.Child("repoUrl"), withoutCredentials(spec.RepoURL), fmt.Sprintf("provider %s needs an https URL", provider)))
	}
	switch {
	case provider == configbutler.ProviderGitHub && spec.SecretRef == nil:
		errs = append(errs, field.Required(path.Child("secretRef"), "provider github needs a Secret with githubAppID and the other keys of the app"))
	case provider == configbutler.ProviderAzure && spec.SecretRef != nil:
		errs = append(errs, field.Forbidden(path.Child("secretRef"), "provider azure uses the identity of the server, without a Secret"))
	}
	return errs
}

func validatePushPolicy(push *configbutler.PushPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if i := push.Interval; i != nil && (i.Duration < minPushInterval || i.Duration > maxPushInterval) {
		errs = append(errs, field.Invalid(path.Child("interval"), i.Duration.String(), "must be at least 100ms and at most 1h"))
	}
	if n := push.MaxCommits; n != nil && (*n < 1 || *n > maxPushCommits) {
		errs = append(errs, field.Invalid(path.Child("maxCommits"), *n, "must be at least 1 and at most 10000"))
	}
	return errs
}

func validateCommitPolicy(commit *configbutler.CommitPolicy, path *field.Path) field.ErrorList {
	errs := validateTemplates(commit.AuthorTemplate, commit.MessageTemplate, path)
	if committer := commit.Committer; committer != nil {
		errs = append(errs, validateIdentity(committer.Name, path.Child("committer", "name"))...)
		errs = append(errs, validateIdentity(committer.Email, path.Child("committer", "email"))...)
	}
	if signing := commit.Signing; signing != nil {
		errs = append(errs, validateSecretReference(signing.SecretRef, path.Child("signing", "secretRef"))...)
		errs = append(errs, validateOneOf(signing.Format, path.Child("signing", "format"),
			configbutler.SigningFormatSSH, configbutler.SigningFormatOpenPGP)...)
	}
	return errs
}

// validateIdentity checks a part of "Name <email>" as Git writes it into a commit's header.
func validateIdentity(value string, path *field.Path) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(path, "a committer has a name and an email")}
	case len(value) > maxIdentityLength:
		return field.ErrorList{field.TooLong(path, "", maxIdentityLength)}
	case strings.ContainsAny(value, "<>") || strings.ContainsFunc(value, unicode.IsControl) || strings.TrimSpace(value) != value:
		return field.ErrorList{field.Invalid(path, value, "must not contain <, > or control characters, nor begin or end with a space")}
	}
	return nil
}
