// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

const (
	// maxProposalTitle fits into the titles of all hosts, of which the shortest has 255 characters.
	maxProposalTitle = 200
	// maxProposalBody leaves room for the table in the shortest description that a host stores, 4000 characters at Azure DevOps.
	maxProposalBody = 2000
	// maxProposalNames bounds the labels, and the reviewers. Each may take a request.
	maxProposalNames = 20
	// maxProposalName is the length of a label or reviewer in bytes. Labels of GitHub and Gitea have 50 characters.
	maxProposalName = 100
	minOpenAge      = time.Hour
)

// validateDelivery validates how a destination's commits reach its branch.
func validateDelivery(destination *configbutler.GitDestination, path *field.Path) field.ErrorList {
	delivery := destination.Spec.Delivery
	if delivery == nil {
		return nil
	}
	errs := validateOneOf(delivery.Type, path.Child("type"), configbutler.DeliveryPush, configbutler.DeliveryPullRequest)
	path = path.Child("pullRequest")
	switch {
	case delivery.PullRequest == nil:
		return errs
	case delivery.Type != configbutler.DeliveryPullRequest:
		return append(errs, field.Forbidden(path, "must be absent unless type is PullRequest"))
	}
	return append(errs, validatePullRequest(destination, delivery.PullRequest, path)...)
}

func validatePullRequest(
	destination *configbutler.GitDestination, pull *configbutler.PullRequestDelivery, path *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	branch := pull.BranchPrefix + destination.Namespace + "/" + destination.Name
	if strings.Count(pull.BranchPrefix, "/") != 1 || !strings.HasSuffix(pull.BranchPrefix, "/") {
		// Otherwise the branch of one destination could have the name of another's, or be inside it.
		errs = append(errs, field.Invalid(path.Child("branchPrefix"), pull.BranchPrefix, "must be one segment that ends with /, such as slipstream/"))
	}
	if detail := refusedBranch(branch); detail != "" {
		errs = append(errs, field.Invalid(path.Child("branchPrefix"), pull.BranchPrefix, fmt.Sprintf("makes the branch %s, which %s", branch, detail)))
	} else if branch == destination.Spec.Branch {
		errs = append(errs, field.Invalid(path.Child("branchPrefix"), pull.BranchPrefix, "makes the branch of the spec, to which changes are proposed"))
	}
	if len(pull.Title) > maxProposalTitle {
		errs = append(errs, field.TooLong(path.Child("title"), "", maxProposalTitle))
	} else if strings.ContainsFunc(pull.Title, unicode.IsControl) || !utf8.ValidString(pull.Title) {
		errs = append(errs, field.Invalid(path.Child("title"), pull.Title, "must be one line of UTF-8"))
	}
	if len(pull.Body) > maxProposalBody {
		errs = append(errs, field.TooLong(path.Child("body"), "", maxProposalBody))
	}
	errs = append(errs, validateProposalNames(pull.Labels, path.Child("labels"))...)
	errs = append(errs, validateProposalNames(pull.Reviewers, path.Child("reviewers"))...)
	if age := pull.MaxOpenAge; age != nil && age.Duration < minOpenAge {
		errs = append(errs, field.Invalid(path.Child("maxOpenAge"), age.Duration.String(), "must be at least 1h"))
	}
	return errs
}

func validateProposalNames(names []string, path *field.Path) field.ErrorList {
	if n := len(names); n > maxProposalNames {
		return field.ErrorList{field.TooMany(path, n, maxProposalNames)}
	}
	errs := validateUnique(names, path)
	for i, name := range names {
		switch {
		case name == "" || strings.TrimSpace(name) != name || strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name):
			errs = append(errs, field.Invalid(path.Index(i), name, "must be one line of UTF-8 that neither begins nor ends with a space"))
		case len(name) > maxProposalName:
			errs = append(errs, field.TooLong(path.Index(i), "", maxProposalName))
		}
	}
	return errs
}

// validateGitHost validates the API of a repository's Git host.
func validateGitHost(host *configbutler.GitHost, options Options, path *field.Path) field.ErrorList {
	if host == nil {
		return nil
	}
	var errs field.ErrorList
	if host.Type != "" {
		errs = validateOneOf(host.Type, path.Child("type"), configbutler.GitHostGitHub, configbutler.GitHostGitLab,
			configbutler.GitHostGitea, configbutler.GitHostAzureDevOps)
	}
	if host.APIURL != "" {
		errs = append(errs, validateAPIURL(host.APIURL, options, path.Child("apiURL"))...)
	}
	if host.SecretRef != nil {
		errs = append(errs, validateSecretReference(*host.SecretRef, path.Child("secretRef"))...)
	}
	return errs
}

func validateAPIURL(raw string, options Options, path *field.Path) field.ErrorList {
	const allowed = "must be an https URL such as https://git.example.com/api/v4, without credentials, query and fragment"
	parsed, err := url.Parse(raw)
	switch {
	case len(raw) > maxURLLength:
		return field.ErrorList{field.TooLong(path, "", maxURLLength)}
	case err != nil, parsed.Hostname() == "", parsed.User != nil, parsed.RawQuery != "", parsed.ForceQuery, parsed.Fragment != "",
		strings.ContainsFunc(raw, isSpaceOrControl), parsed.Scheme != "https" && parsed.Scheme != "http":
		return field.ErrorList{field.Invalid(path, withoutCredentials(raw), allowed)}
	case parsed.Scheme == "http" && !options.AllowInsecureURLs:
		return field.ErrorList{field.Invalid(path, withoutCredentials(raw),
			"the server refuses http URLs unless it is started with --git-allow-insecure; "+allowed)}
	}
	return nil
}
