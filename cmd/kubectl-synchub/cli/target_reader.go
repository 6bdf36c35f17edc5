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

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

// targetTimeout bounds the requests to a target, which may be unreachable.
const targetTimeout = 15 * time.Second

// ReaderByCredentials returns a reader for the cluster of a SyncTarget, with the hub's kubeconfig.
func ReaderByCredentials(ctx context.Context, workspace client.Client, syncTarget *edgev2alpha1.SyncTarget) (*Reader, error) {
	if syncTarget.Spec.Connection == edgev2alpha1.ConnectionTunnel {
		return nil, errors.New("it opens a tunnel to the hub, which has no kubeconfig of it")
	}
	inventory := &registration.Inventory{Client: workspace}
	content, err := inventory.Kubeconfig(ctx, syncTarget)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the Secret with its kubeconfig cannot be read: %w", err)
	case content == nil:
		return nil, errors.New("there is no Secret with its kubeconfig")
	}
	config, err := kubeconfig.Parse(content)
	if err != nil {
		return nil, err
	}
	return NewTargetReader(config)
}

// NewTargetReader returns a reader of a target, which gives up after a while.
func NewTargetReader(config *rest.Config) (*Reader, error) {
	config.Timeout = targetTimeout
	return NewReader(withRequestLimits(config))
}
