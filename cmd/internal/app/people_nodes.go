package app

import (
	"context"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// ForgetNode implements admin.Operator.
func (p people) ForgetNode(ctx context.Context, want api.NodeName) (api.Node, error) {
	p.a.log.Warn("app: an operator has a node forgotten for good", "node", want.Node)
	if err := p.a.group.ForgetNode(ctx, want.Node); err != nil {
		return api.Node{}, err
	}
	if err := p.a.forgetWords(ctx, want.Node); err != nil {
		p.a.log.Warn("app: a node that is forgotten stays drained, if it was", "node", want.Node, "error", err)
	}
	return api.Node{Node: want.Node, State: api.NodeForgotten}, nil
}

// ReplaceNode implements admin.Operator.
func (p people) ReplaceNode(ctx context.Context, want api.NodeName) (api.Node, error) {
	p.a.log.Warn("app: an operator lets a node come back with another home", "node", want.Node)
	if err := p.a.group.ReplaceHome(ctx, want.Node); err != nil {
		return api.Node{}, err
	}
	return api.Node{Node: want.Node, State: api.NodeReplaceable}, nil
}
