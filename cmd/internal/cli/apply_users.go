package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
)

const kindUser = "user"

// userPlan is what is to be done so that the group has the users of files.
type userPlan struct {
	changes []api.SettingChange
	add     []api.AddUser
	set     map[string]api.SetUser
	remove  []string
	same    int
	left    int
}

// planUsers compares those that there are with those of the files, of which there are some. Passwords are read of new ones
// only.
func planUsers(there []api.User, want []configs.User, prune bool) (p userPlan, err error) {
	p.set = map[string]api.SetUser{}
	for _, u := range want {
		i := slices.IndexFunc(there, func(x api.User) bool { return x.Name == u.Name })
		if i < 0 {
			password, err := u.Password.Resolve()
			if err != nil {
				why := ""
				if u.Password.Given() {
					why = ": " + err.Error()
				}
				return p, &api.Error{Code: api.CodeUsage, Message: "user " + u.Name + ": password: a new user needs one" + why, Hint: "write a reference, such as password: file:/root/" + u.Name + ".password; it counts this once"}
			}
			p.add = append(p.add, api.AddUser{Name: u.Name, Role: api.Role(u.Role), Password: api.Secret(password)})
			p.changes = append(p.changes, api.SettingChange{Kind: kindUser, Name: u.Name, Change: api.SettingAdded, After: userSpec(u)})
			if u.Disabled {
				p.set[u.Name] = api.SetUser{Disabled: &u.Disabled}
			}
			continue
		}
		var set api.SetUser
		var keys []string
		if was := there[i]; string(was.Role) != u.Role {
			role := api.Role(u.Role)
			set.Role, keys = &role, append(keys, "role")
		}
		if there[i].Disabled != u.Disabled {
			set.Disabled, keys = &u.Disabled, append(keys, "disabled")
		}
		if len(keys) == 0 {
			p.same++
			continue
		}
		p.set[u.Name] = set
		slices.Sort(keys)
		p.changes = append(p.changes, api.SettingChange{Kind: kindUser, Name: u.Name, Change: api.SettingChanged, Keys: keys, Before: userSpec(userOf(there[i])), After: userSpec(u)})
	}
	for _, x := range there {
		switch {
		case slices.ContainsFunc(want, func(u configs.User) bool { return u.Name == x.Name }):
		case prune:
			p.remove = append(p.remove, x.Name)
			p.changes = append(p.changes, api.SettingChange{Kind: kindUser, Name: x.Name, Change: api.SettingRemoved, Before: userSpec(userOf(x))})
		default:
			p.left++
		}
	}
	return p, nil
}

// userOf is an account as files have it: without a password, which nobody knows.
func userOf(x api.User) configs.User {
	return configs.User{Name: x.Name, Role: string(x.Role), Disabled: x.Disabled}
}

// userSpec is what a file says of a user, without the password.
func userSpec(u configs.User) json.RawMessage {
	said := map[string]any{"name": u.Name, "role": u.Role}
	if u.Disabled {
		said["disabled"] = true
	}
	text, err := json.Marshal(said)
	if err != nil {
		panic("cli: a user of plain fields was not encoded: " + err.Error())
	}
	return text
}

// carryOut makes the changes, one after the other.
func (p userPlan) carryOut(ctx context.Context, c *api.Client) error {
	for _, u := range p.add {
		if _, err := c.AddUser(ctx, u); err != nil {
			return err
		}
	}
	for _, change := range p.changes { // in the order of the files
		if set, ok := p.set[change.Name]; ok {
			if _, err := c.SetUser(ctx, change.Name, set); err != nil {
				return err
			}
		}
	}
	for _, name := range p.remove {
		if _, err := c.RemoveUser(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// usersToApply looks what is to be done with the users of files; nothing when they name none.
func usersToApply(ctx context.Context, c *api.Client, want []configs.User, prune bool) (userPlan, error) {
	if len(want) == 0 {
		return userPlan{}, nil
	}
	there, err := c.Users(ctx)
	if err != nil {
		return userPlan{}, err
	}
	p, err := planUsers(there, want, prune)
	if err != nil || len(p.remove) == 0 {
		return p, err
	}
	me, err := c.Session(ctx)
	if err == nil && slices.Contains(p.remove, me.Name) {
		err = &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("the files do not name %s, who applies them: nothing was done", me.Name), Hint: "name the user, or apply without --prune"}
	}
	return p, err
}

// exportUsers are the accounts as files have them; none for who may not see them, and why.
func exportUsers(ctx context.Context, c *api.Client) (list []configs.User, err error) {
	all, err := c.Users(ctx)
	for _, x := range all {
		list = append(list, userOf(x))
	}
	slices.SortFunc(list, func(a, b configs.User) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}
