// Made by make web from internal/present/palette. Do not edit.

export const names = [
  {
    "name": "parameters",
    "shade": {
      "light": [
        51,
        142,
        193
      ],
      "dark": [
        3,
        95,
        148
      ]
    }
  },
  {
    "name": "gradients",
    "shade": {
      "light": [
        235,
        178,
        51
      ],
      "dark": [
        187,
        131,
        6
      ]
    }
  },
  {
    "name": "optimizer state",
    "shade": {
      "light": [
        51,
        177,
        143
      ],
      "dark": [
        3,
        131,
        98
      ]
    }
  },
  {
    "name": "activations",
    "shade": {
      "light": [
        214,
        148,
        185
      ],
      "dark": [
        167,
        101,
        139
      ]
    }
  },
  {
    "name": "temporaries",
    "shade": {
      "light": [
        120,
        195,
        237
      ],
      "dark": [
        72,
        148,
        192
      ]
    }
  },
  {
    "name": "workspace",
    "shade": {
      "light": [
        221,
        126,
        51
      ],
      "dark": [
        174,
        79,
        6
      ]
    }
  },
  {
    "name": "unknown",
    "shade": {
      "light": [
        176,
        182,
        190
      ],
      "dark": [
        94,
        102,
        114
      ]
    }
  },
  {
    "name": "cache",
    "shade": {
      "light": [
        173,
        173,
        92
      ],
      "dark": [
        126,
        127,
        46
      ]
    }
  },
  {
    "name": "master weights",
    "shade": {
      "light": [
        140,
        192,
        220
      ],
      "dark": [
        9,
        63,
        96
      ]
    }
  },
  {
    "name": "weight casts",
    "shade": {
      "light": [
        6,
        81,
        126
      ],
      "dark": [
        89,
        163,
        205
      ]
    }
  },
  {
    "name": "saved copies",
    "shade": {
      "light": [
        140,
        211,
        192
      ],
      "dark": [
        9,
        83,
        67
      ]
    }
  },
  {
    "name": "loss",
    "shade": {
      "light": [
        232,
        195,
        215
      ],
      "dark": [
        101,
        66,
        91
      ]
    }
  },
  {
    "name": "inputs",
    "shade": {
      "light": [
        179,
        221,
        245
      ],
      "dark": [
        48,
        93,
        120
      ]
    }
  },
  {
    "name": "buffers",
    "shade": {
      "light": [
        62,
        124,
        161
      ],
      "dark": [
        145,
        206,
        241
      ]
    }
  },
  {
    "name": "collectives",
    "shade": {
      "light": [
        236,
        183,
        140
      ],
      "dark": [
        105,
        54,
        15
      ]
    }
  }
] as const;

export const ordinals = [
  {
    "light": [
      51,
      142,
      193
    ],
    "dark": [
      3,
      95,
      148
    ]
  },
  {
    "light": [
      235,
      178,
      51
    ],
    "dark": [
      187,
      131,
      6
    ]
  },
  {
    "light": [
      51,
      177,
      143
    ],
    "dark": [
      3,
      131,
      98
    ]
  },
  {
    "light": [
      214,
      148,
      185
    ],
    "dark": [
      167,
      101,
      139
    ]
  },
  {
    "light": [
      120,
      195,
      237
    ],
    "dark": [
      72,
      148,
      192
    ]
  },
  {
    "light": [
      221,
      126,
      51
    ],
    "dark": [
      174,
      79,
      6
    ]
  },
  {
    "light": [
      173,
      173,
      92
    ],
    "dark": [
      126,
      127,
      46
    ]
  },
  {
    "light": [
      140,
      192,
      220
    ],
    "dark": [
      9,
      63,
      96
    ]
  },
  {
    "light": [
      244,
      212,
      140
    ],
    "dark": [
      113,
      83,
      15
    ]
  },
  {
    "light": [
      140,
      211,
      192
    ],
    "dark": [
      9,
      83,
      67
    ]
  },
  {
    "light": [
      232,
      195,
      215
    ],
    "dark": [
      101,
      66,
      91
    ]
  },
  {
    "light": [
      179,
      221,
      245
    ],
    "dark": [
      48,
      93,
      120
    ]
  },
  {
    "light": [
      236,
      183,
      140
    ],
    "dark": [
      105,
      54,
      15
    ]
  },
  {
    "light": [
      209,
      209,
      163
    ],
    "dark": [
      78,
      80,
      38
    ]
  },
  {
    "light": [
      6,
      81,
      126
    ],
    "dark": [
      89,
      163,
      205
    ]
  },
  {
    "light": [
      155,
      111,
      10
    ],
    "dark": [
      239,
      193,
      89
    ]
  },
  {
    "light": [
      6,
      110,
      85
    ],
    "dark": [
      89,
      192,
      164
    ]
  },
  {
    "light": [
      139,
      86,
      118
    ],
    "dark": [
      222,
      168,
      198
    ]
  },
  {
    "light": [
      62,
      124,
      161
    ],
    "dark": [
      145,
      206,
      241
    ]
  },
  {
    "light": [
      144,
      68,
      10
    ],
    "dark": [
      228,
      150,
      89
    ]
  }
] as const;

export const hues = [
  [
    0,
    114,
    178
  ],
  [
    230,
    159,
    0
  ],
  [
    0,
    158,
    115
  ],
  [
    204,
    121,
    167
  ],
  [
    86,
    180,
    233
  ],
  [
    213,
    94,
    0
  ],
  [
    153,
    153,
    51
  ]
] as const;

export const grey = {
  "light": [
    176,
    182,
    190
  ],
  "dark": [
    94,
    102,
    114
  ]
} as const;
