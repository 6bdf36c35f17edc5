/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package check

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/exportbinding"
	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/provider/wording"
)

// oldestKCP is the oldest minor version of kcp 0 with which the hub was tested.
const oldestKCP = 31

var kcpVersion = regexp.MustCompile(`kcp-v0\.(\d+)\.`)

// kcp checks that a workspace answers, and the version of kcp. It reports whether the other checks of kcp make sense.
func (r *Report) kcp(config *rest.Config) bool {
	const area = "kcp"
	versions, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		r.add(area, Problem, "the kubeconfig cannot be used: %v", err)
		return false
	}
	version, err := versions.ServerVersion()
	switch {
	case err != nil:
		r.add(area, Problem, "%s does not answer: %v", config.Host, err)
		return false
	case isOldKCP(version.GitVersion):
		r.add(area, Warning, "version %s is older than 0.%d, with which this version was tested", version.GitVersion, oldestKCP)
	default:
		r.add(area, OK, "%s answers, version %s", config.Host, version.GitVersion)
	}
	return true
}

// isOldKCP reports whether a version of kcp is too old to have been tested. Some builds do not report their version.
func isOldKCP(version string) bool {
	found := kcpVersion.FindStringSubmatch(version)
	if found == nil {
		return false
	}
	minor, err := strconv.Atoi(found[1])
	return err == nil && minor < oldestKCP
}

// provider checks that the provider workspace is as `kubectl synchub init` of this version leaves it: a dry run would change nothing. If
// hubUser is empty, the rights of the hub's user in kcp are not checked.
func (r *Report) provider(ctx context.Context, config *rest.Config, workspace, hubUser string) error {
	missing, outdated, err := dryRunInit(ctx, config, workspace, hubUser)
	const area = "provider"
	switch {
	case errors.Is(err, errNoKCP):
		return err
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		r.add(area, Skipped, "only an administrator of the provider workspace %s can check it: %v", workspace, err)
		return nil
	case err != nil:
		r.add(area, Problem, "the provider workspace %s cannot be checked: %v", workspace, err)
		return nil
	}
	if len(missing) > 0 {
		r.add(area, Problem, "%s lacks %s: run `kubectl synchub init` of this version", workspace, wording.First(maxNamed, missing))
	}
	if len(outdated) > 0 {
		r.add(area, Problem, "%s differs from what this version needs, in %s: run `kubectl synchub init` of this version", workspace, wording.First(maxNamed, outdated))
	}
	if len(missing)+len(outdated) > 0 {
		return nil
	}
	rights := "whether the hub's user has its rights was not checked: name it by --hub-user"
	if hubUser != "" {
		rights = "the user " + hubUser + " has the hub's rights"
	}
	r.add(area, OK, "%s has the exports, schemas, roles and policy of this version; %s", workspace, rights)
	return nil
}

// bindings checks the APIBindings of the hub's exports in a workspace. They have the path of the provider workspace.
func (r *Report) bindings(ctx context.Context, workspace client.Reader, provider string) {
	const area = "bindings"
	var list apisv1alpha2.APIBindingList
	switch err := workspace.List(ctx, &list); {
	case meta.IsNoMatchError(err):
		r.add(area, Problem, "the current context leads to no workspace of kcp")
		return
	case err != nil:
		r.add(area, Skipped, "the APIBindings of the workspace cannot be listed: %v", err)
		return
	}
	found := false
	for _, export := range []exportbinding.Export{exportbinding.Inventory(), exportbinding.Workload()} {
		for i := range list.Items {
			binding := &list.Items[i]
			if reference := binding.Spec.Reference.Export; reference == nil || reference.Name != export.Name || reference.Path != provider {
				continue
			}
			found = true
			problems := export.Problems(binding)
			for _, problem := range problems {
				r.add(area, Problem, "the APIBinding %s of %s %s", binding.Name, export.Name, problem)
			}
			if len(problems) == 0 {
				r.add(area, OK, "%s is bound, and all its claims are accepted", export.Name)
			}
		}
	}
	if !found {
		r.add(area, Warning, "the workspace binds no export of %s: `%s` makes it an inventory workspace, and `%s` a workload workspace",
			provider, exportbinding.Inventory().Command, exportbinding.Workload().Command)
	}
}

// errNoKCP means that the kubeconfig leads to no workspace.
var errNoKCP = errors.New("the kubeconfig leads to no kcp")

// dryRunInit returns what init would create and change in the provider workspace.
func dryRunInit(ctx context.Context, config *rest.Config, workspace, hubUser string) (missing, outdated []string, err error) {
	if _, err := cli.InWorkspace(config, workspace); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNoKCP, err)
	}
	err = bootstrap.Run(ctx, bootstrap.Options{
		Workspace: workspace, HubUser: hubUser, DryRun: true,
		Config: func(workspace string) *rest.Config {
			// The call above has shown that this works.
			of, _ := cli.InWorkspace(config, workspace)
			return of
		},
		Report: func(object, result string) {
			switch result {
			case string(controllerutil.OperationResultCreated):
				missing = append(missing, object)
			case string(controllerutil.OperationResultUpdated):
				outdated = append(outdated, object)
			}
		},
	})
	return missing, outdated, err
}
