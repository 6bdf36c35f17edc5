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

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/provider/registration"
)

// Values of --mode.
const (
	modeHub   = "hub"
	modeAgent = "agent"
)

// checkAgent validates the flags of a registration with an agent.
func (o *registerOptions) checkAgent() error {
	if o.hubKubeconfig != "" || o.target.kubeconfig != "" || o.target.context != "" {
		return errors.New("with --mode=agent nothing is done on the cluster: leave --target-kubeconfig, --target-context and --kubeconfig-only away, and apply the printed manifest")
	}
	if o.hosting.isSet() {
		return errors.New("with --mode=agent the PublishedResources of the hosting cluster are not read: leave --hosting-kubeconfig and --hosting-context away, and name the resources with --resources")
	}
	if *o.output.OutputFormat != "yaml" && *o.output.OutputFormat != "json" {
		return errors.New("with --mode=agent, --output=yaml or --output=json is needed: the manifest for the cluster is printed")
	}
	return nil
}

// registerAgent registers a cluster that an agent keeps in sync, and prints the manifest for the cluster.
func (o *registerOptions) registerAgent(ctx context.Context, name string) error {
	agent, err := o.planAgent(name)
	if err != nil {
		return err
	}
	// Only the manifest goes to standard output.
	agent.Inventory.Report = func(change registration.Change) {
		o.note(fmt.Sprintf("%s %s %s", change.Object.GetObjectKind().GroupVersionKind().Kind, change.Object.GetName(), change.Result))
	}
	waiting, cancel := context.WithTimeout(ctx, o.limit())
	defer cancel()
	if o.dryRun != dryRunNone {
		o.note("A dry run prints no Secret, since nobody gets a token in it. Do not delete the one in the cluster.")
	}
	if o.dryRun == dryRunClient {
		return o.printAll(agent.Objects(waiting))
	}
	return o.printAll(agent.Register(waiting))
}

// printAll prints the objects as manifests.
func (o *registerOptions) printAll(objects []client.Object, err error) error {
	for _, object := range objects {
		if err == nil {
			err = o.manifests.PrintObj(object, o.Out)
		}
	}
	return err
}

func (o *registerOptions) planAgent(name string) (*registration.Agent, error) {
	agent := &registration.Agent{Registrar: *o.newRegistrar(name), Namespace: o.agentNamespace, Image: o.agentImage}
	agent.Mode = edgev2alpha1.SyncModeAgent
	var err error
	if agent.Requested.Resources, err = rbac.ParseResources(o.resources); err != nil {
		return nil, fmt.Errorf("--resources: %w", err)
	}
	if agent.Requested.Additional, err = rbac.ParseResources(o.addResources); err != nil {
		return nil, fmt.Errorf("--add-resources: %w", err)
	}
	if agent.Inventory, err = o.inventory(); err != nil {
		return nil, err
	}
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("cannot read the server of the current context: %w", err)
	}
	prefix, _, _ := strings.Cut(server.Path, "/clusters/")
	server.Path = strings.TrimSuffix(prefix, "/")
	agent.MailboxClient = func(workspace string) (client.Client, error) {
		mailbox := rest.CopyConfig(config)
		mailbox.Host = server.String() + "/clusters/" + workspace
		return clientOf(mailbox)
	}
	agent.Server, agent.CA, agent.ServerName = server.String(), config.CAData, config.ServerName
	if config.CAFile != "" {
		if agent.CA, err = os.ReadFile(config.CAFile); err != nil {
			return nil, fmt.Errorf("cannot read the certificate authority of the current context: %w", err)
		}
	}
	if o.kcpServer != "" {
		agent.Server = strings.TrimSuffix(o.kcpServer, "/")
	}
	if o.kcpAuthority != "" {
		if agent.CA, err = os.ReadFile(o.kcpAuthority); err != nil {
			return nil, fmt.Errorf("--kcp-certificate-authority: %w", err)
		}
		if _, err := cert.ParseCertsPEM(agent.CA); err != nil {
			return nil, fmt.Errorf("--kcp-certificate-authority: %s: %w", o.kcpAuthority, err)
		}
	}
	return agent, nil
}
