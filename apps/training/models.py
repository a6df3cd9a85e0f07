# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The networks, and made-up data from which each can learn."""

import torch
from torch import nn

IMAGES = ("resnet", "resnet50", "mlp")
MODELS = (*IMAGES, "gpt")


class Block(nn.Module):
    """Two convolutions beside a way around them, as in ResNet."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, out, 3, stride, padding=1, bias=False), nn.BatchNorm2d(out),
            nn.ReLU(), nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out))
        self.around = nn.Conv2d(channels, out, 1, stride, bias=False)

    def forward(self, x):
        return torch.relu(self.body(x) + self.around(x))


class Layer(nn.Module):
    """Of a GPT: each position looks at those before it, then goes through two linear maps."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.looks = nn.Linear(width, 3 * width)
        self.seen = nn.Linear(width, width)
        self.thinks = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                    nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.size()
        parts = self.looks(self.before(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        found = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.seen(found.transpose(1, 2).reshape(batch, length, width))
        return x + self.thinks(x)


class GPT(nn.Module):
    """Predicts the token that comes next, at each position."""

    def __init__(self, vocabulary, context, width, heads, layers):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.last = nn.LayerNorm(width)
        self.scores = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        positions = torch.arange(tokens.size(1), device=tokens.device)
        x = self.tokens(tokens) + self.positions(positions)
        for layer in self.layers:
            x = layer(x)
        return self.scores(self.last(x))


def resnet50(classes):
    try:
        from torchvision.models import resnet50 as make
    except Exception as error:  # a torchvision of another torch raises what it likes
        raise SystemExit(
            f"resnet50 is of torchvision, which cannot be imported ({error}). Install "
            f"the torchvision of torch {torch.__version__}, or use --model resnet") from None
    return make(num_classes=classes)


def network(asked):
    """The network, with the same weights for the same seed."""
    torch.manual_seed(asked.seed)
    if asked.model == "gpt":
        if asked.width % asked.heads:
            raise SystemExit(f"--width {asked.width} is no multiple of --heads {asked.heads}")
        return GPT(asked.vocabulary, asked.context, asked.width, asked.heads, asked.layers)
    if asked.model == "resnet50":
        return resnet50(asked.classes)
    if asked.model == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(3 * asked.edge ** 2, 256), nn.ReLU(),
                             nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, asked.classes))
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), Block(16, 16, 1), Block(16, 32, 2),
                         Block(32, 64, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(64, asked.classes))


def images(asked, numbers):
    """Whose brightness says their class, and that class."""
    wanted = torch.randint(asked.classes, (asked.batch,), generator=numbers)
    noise = torch.randn(asked.batch, 3, asked.edge, asked.edge, generator=numbers)
    return noise + wanted.reshape(-1, 1, 1, 1) / asked.classes, wanted


def sentences(asked, numbers):
    """In which each token follows from the one before it, but for one in ten, and what follows."""
    extent = (asked.batch, asked.context + 1)
    text = torch.randint(asked.vocabulary, extent, generator=numbers)
    is_noise = torch.rand(extent, generator=numbers) < 0.1
    for i in range(1, extent[1]):
        follows = (5 * text[:, i - 1] + 3) % asked.vocabulary
        text[:, i] = torch.where(is_noise[:, i], text[:, i], follows)
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


def batches(asked, rank):
    """What this rank learns from, step by step, made before the first."""
    numbers = torch.Generator().manual_seed(100 * asked.seed + rank)
    make = sentences if asked.model == "gpt" else images
    return [tuple(part.to(asked.device) for part in make(asked, numbers))
            for _ in range(asked.steps)]


def loss_of(scores, wanted):
    return nn.functional.cross_entropy(scores.flatten(0, -2), wanted.flatten())


def items(asked):
    """What a rank learns from in a step, as a number of images or tokens."""
    return asked.batch * (asked.context if asked.model == "gpt" else 1)
